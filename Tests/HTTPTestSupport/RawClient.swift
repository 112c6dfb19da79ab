import Base
import Dispatch
import Foundation
import Glibc
import HTTP

/// A TCP client that sends exactly the bytes it is told to.
///
/// Its blocking calls run on Dispatch's threads, so that they cannot starve the handlers they wait for.
package final class RawClient: Sendable {
    package struct Failure: Error {
        package let what: String

        package init(what: String) {
            self.what = what
        }
    }

    package struct Response: Equatable, Sendable {
        package var status = 0
        /// Names in lower case.
        package var headers: [String: String] = [:]
        package var body: [UInt8] = []

        package var text: String { String(decoding: body, as: UTF8.self) }
    }

    private let descriptor: CInt
    /// A queue of its own, because the shared ones have few threads.
    private let queue = DispatchQueue(label: "client")

    /// - Parameter timeout: for each read, in seconds; what should come does so much sooner.
    package init(_ address: TransportAddress, timeout: Int = 120) throws {
        descriptor = socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
        var limit = timeval(tv_sec: timeout, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        let isConnected = address.withSocketAddress { connect(descriptor, $0, $1) == 0 }
        guard isConnected else { throw Failure(what: "cannot connect: \(errno)") }
    }

    /// A client at the other end of a descriptor that does not block.
    package static func pair() throws -> (client: RawClient, other: CInt) {
        var ends: [CInt] = [-1, -1]
        guard socketpair(AF_UNIX, CInt(SOCK_STREAM.rawValue), 0, &ends) == 0 else {
            throw Failure(what: "cannot make two sockets: \(errno)")
        }
        let flags = fcntl(ends[1], F_GETFL)
        guard fcntl(ends[1], F_SETFL, flags | O_NONBLOCK) == 0 else {
            throw Failure(what: "cannot have a socket not block: \(errno)")
        }
        return (RawClient(adopting: ends[0]), ends[1])
    }

    private init(adopting descriptor: CInt) {
        self.descriptor = descriptor
    }

    deinit {
        close(descriptor)
    }

    package func send(_ text: String) async throws { try await send(Array(text.utf8)) }

    package func send(_ bytes: [UInt8]) async throws {
        try await blocking { [descriptor] in
            var rest = bytes[...]
            while !rest.isEmpty {
                let count = rest.withUnsafeBytes {
                    Glibc.send(descriptor, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL))
                }
                guard count > 0 else { throw Failure(what: "cannot send: \(errno)") }
                rest = rest.dropFirst(count)
            }
        }
    }

    /// Says that nothing more will come, and still reads.
    package func finish() { shutdown(descriptor, CInt(SHUT_WR)) }

    /// Closes so that the other end sees a reset.
    package func reset() {
        var option = linger(l_onoff: 1, l_linger: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
        shutdown(descriptor, CInt(SHUT_RDWR))
    }

    /// At most `count` bytes; empty at the end of the connection.
    package func receive(_ count: Int = 65_536) async throws -> [UInt8] {
        try await blocking { [descriptor] in
            var buffer = [UInt8](repeating: 0, count: count)
            let received = recv(descriptor, &buffer, count, 0)
            guard received >= 0 else {
                if errno == ECONNRESET { return [] }
                throw Failure(what: "nothing came: \(errno)")
            }
            return Array(buffer.prefix(received))
        }
    }

    package func receive(exactly count: Int) async throws -> [UInt8] {
        var bytes: [UInt8] = []
        while bytes.count < count {
            let more = try await receive(count - bytes.count)
            guard !more.isEmpty else { throw Failure(what: "the connection ended early") }
            bytes += more
        }
        return bytes
    }

    package func receiveToEnd() async throws -> [UInt8] {
        var bytes: [UInt8] = []
        while true {
            let more = try await receive()
            guard !more.isEmpty else { return bytes }
            bytes += more
        }
    }

    /// Reads one response, byte by byte up to its body.
    package func response(toHead isHead: Bool = false) async throws -> Response {
        var head: [UInt8] = []
        while !head.suffix(4).elementsEqual([13, 10, 13, 10]) {
            head += try await receive(exactly: 1)
        }
        let lines = String(decoding: head, as: UTF8.self).split(separator: "\r\n")
        var response = Response()
        response.status = lines.first?.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
        for line in lines.dropFirst() {
            let parts = line.split(separator: ":", maxSplits: 1)
            response.headers[parts[0].lowercased()] = parts[1].trimmingCharacters(in: .whitespaces)
        }
        if let length = response.headers["content-length"].flatMap({ Int($0) }), !isHead {
            response.body = try await receive(exactly: length)
        }
        return response
    }

    private func blocking<Result: Sendable>(
        _ body: @escaping @Sendable () throws -> Result
    ) async throws -> Result {
        try await withCheckedThrowingContinuation { continuation in
            queue.async { continuation.resume(with: Swift.Result { try body() }) }
        }
    }
}
