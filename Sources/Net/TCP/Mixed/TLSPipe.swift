import Base
import CLinux
import Glibc

/// Relays between a client that speaks TLS and a server that speaks plain TCP.
///
/// Both ends are watched for changes, so each call has to go on until nothing moves any more. If one end accepts
/// nothing, the other end's bytes stay in the kernel: at most `room` and one piece wait here in each direction.
final class TLSPipe {
    /// What the caller has to do after a call.
    enum Step {
        /// Nothing can move until an end changes.
        case rest
        /// More can move, after other connections had their turn.
        case more
        /// The pipe is over and both ends can be closed.
        case over
    }

    /// Bytes waiting for one end from which on nothing more is read from the other.
    private static let room = 64 << 10
    /// Rounds of one call, so that a fast client does not delay others.
    private static let roundsPerCall = 8
    /// How long a client has to close its side after it was told of the end.
    private static let farewell = Duration.seconds(2)
    /// How long the server's last bytes are kept for a client that accepts nothing.
    private static let patience = Duration.seconds(20)

    /// The socket to the client; closed by the owner of the pipe.
    let outside: Int32
    /// This side of the pair of sockets whose other side the HTTP server has.
    let inside: Int32
    /// Tokens under which the ends are watched; nil until they are.
    var outsideToken: UInt32?
    var insideToken: UInt32?
    private let tls: SharedTLS
    /// Decrypted bytes on their way to the server.
    private var plain: [UInt8]
    /// Encrypted bytes on their way to the client.
    private var encrypted: [UInt8]
    /// No more input from the client: it closed TLS or TCP, or the connection broke.
    private var clientEnded = false
    /// No more input from the server, or it accepts no more output.
    private var serverEnded = false
    /// The client accepts no more output.
    private var isBroken = false
    /// Whether the server was told that the client has ended.
    private var hasToldServer = false
    /// When the client was told that the server has ended; nil before.
    private var toldClientAt: MonotonicTime?
    private var lastProgress: MonotonicTime
    /// Bytes moved in total; unchanged after a round in which nothing moved.
    private var moved: UInt64 = 0

    /// - Parameter begun: its decrypted and its unsent bytes are moved first.
    init(_ begun: BegunTLS, outside: Int32, inside: Int32, at now: MonotonicTime) {
        self.outside = outside
        self.inside = inside
        tls = begun.tls
        plain = begun.plain
        encrypted = begun.output
        lastProgress = now
    }

    /// Moves bytes in both directions until nothing moves any more, or the turn is over.
    /// - Parameter buffer: to read into; shared by all pipes of the thread.
    func pump(_ buffer: inout [UInt8], at now: MonotonicTime) -> Step {
        for _ in 0..<Self.roundsPerCall {
            let before = moved
            takeFromClient(&buffer)
            giveToServer()
            takeFromServer(&buffer)
            giveToClient(at: now)
            guard moved != before else {
                return isOver(at: now) ? .over : .rest
            }
            lastProgress = now
        }
        return .more
    }

    /// Whether both sides are done, or the client was given enough time.
    private func isOver(at now: MonotonicTime) -> Bool {
        guard !isBroken else { return true }
        guard serverEnded else { return false }
        if let toldClientAt { return clientEnded || now >= toldClientAt + Self.farewell }
        return now >= lastProgress + Self.patience
    }

    private func takeFromClient(_ buffer: inout [UInt8]) {
        guard !clientEnded, plain.count < Self.room else { return }
        let count = receive(outside, &buffer)
        if count > 0 {
            moved &+= UInt64(count)
            plain += tls.receive(buffer.span.extracting(0..<count))
            encrypted += tls.takeOutput()
        }
        clientEnded = tls.isClosed || count <= 0 && count != -Int(EAGAIN)
    }

    private func giveToServer() {
        // The server accepts nothing any more; the bytes would keep the pipe from ending.
        if serverEnded { plain = [] }
        if !send(&plain, to: inside) { serverEnded = true }
        if clientEnded, plain.isEmpty, !hasToldServer {
            hasToldServer = true
            clinux_stream_end(inside)
        }
    }

    private func takeFromServer(_ buffer: inout [UInt8]) {
        guard !serverEnded, encrypted.count < Self.room else { return }
        let count = receive(inside, &buffer)
        if count > 0 {
            moved &+= UInt64(count)
            tls.send(Array(buffer[..<count]))
        } else if count != -Int(EAGAIN) {
            serverEnded = true
            tls.close()
        }
        encrypted += tls.takeOutput()
    }

    private func giveToClient(at now: MonotonicTime) {
        if !send(&encrypted, to: outside) { isBroken = true }
        if serverEnded, encrypted.isEmpty, toldClientAt == nil {
            toldClientAt = now
            clinux_stream_end(outside)
        }
    }

    private func receive(_ descriptor: Int32, _ buffer: inout [UInt8]) -> Int {
        unsafe buffer.withUnsafeMutableBytes { buffer in
            unsafe Int(clinux_stream_receive(descriptor, buffer.baseAddress, Int32(clamping: buffer.count)))
        }
    }

    /// - Returns: false if the other end is gone; true also if it has no room now.
    private func send(_ bytes: inout [UInt8], to descriptor: Int32) -> Bool {
        while !bytes.isEmpty {
            let count = unsafe bytes.withUnsafeBytes { bytes in
                unsafe Int(clinux_stream_send(descriptor, bytes.baseAddress, Int32(clamping: bytes.count)))
            }
            guard count > 0 else { return count == 0 || count == -Int(EAGAIN) || count == -Int(ENOBUFS) }
            moved &+= UInt64(count)
            bytes.removeFirst(count)
        }
        return true
    }
}
