import Dispatch
import Glibc

/// A TCP server on the loopback interface that says exactly the bytes it is told to.
///
/// Its blocking calls run on a thread of its own, so that they cannot starve the code they wait for.
package final class ScriptedServer: Sendable {
    package struct Failure: Error {
        package let what: String
    }

    /// A connection that a client has made.
    package struct Connection: Sendable {
        fileprivate let descriptor: CInt

        /// What has come; empty at the end of the connection, and where nothing comes for two minutes.
        package func receive() -> [UInt8] {
            var buffer = [UInt8](repeating: 0, count: 65_536)
            let count = recv(descriptor, &buffer, buffer.count, 0)
            return Array(buffer.prefix(max(count, 0)))
        }

        /// All that comes up to these bytes, which must be the last ones that the client sends.
        package func receive(through end: String) -> [UInt8] {
            let end = Array(end.utf8)
            var bytes: [UInt8] = []
            while !bytes.suffix(end.count).elementsEqual(end) {
                let more = receive()
                guard !more.isEmpty else { break }
                bytes += more
            }
            return bytes
        }

        package func send(_ bytes: [UInt8]) {
            var rest = bytes[...]
            while !rest.isEmpty {
                let count = rest.withUnsafeBytes {
                    Glibc.send(descriptor, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL))
                }
                guard count > 0 else { return }
                rest = rest.dropFirst(count)
            }
        }

        package func send(_ text: String) { send(Array(text.utf8)) }

        /// Says that nothing more will come, and reads until the client has said the same.
        package func finish() {
            shutdown(descriptor, CInt(SHUT_WR))
            while !receive().isEmpty {}
        }
    }

    package let port: UInt16
    private let descriptor: CInt

    /// - Parameter serve: speaks on each connection in turn, which is closed when this returns.
    package init(_ serve: @escaping @Sendable (Connection) -> Void) throws {
        let descriptor = socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
        self.descriptor = descriptor
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let status = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                guard bind(descriptor, address, length) == 0, listen(descriptor, 16) == 0 else {
                    return CInt(-1)
                }
                return getsockname(descriptor, address, &length)
            }
        }
        guard status == 0 else { throw Failure(what: "cannot listen: \(errno)") }
        port = UInt16(bigEndian: address.sin_port)
        DispatchQueue(label: "scripted server").async {
            while true {
                let client = accept(descriptor, nil, nil)
                // As `stop` wants it.
                guard client >= 0 else { break }
                var limit = timeval(tv_sec: 120, tv_usec: 0)
                setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
                serve(Connection(descriptor: client))
                close(client)
            }
            close(descriptor)
        }
    }

    /// Takes no further connections; each test must call it in the end.
    package func stop() {
        shutdown(descriptor, CInt(SHUT_RDWR))
    }
}
