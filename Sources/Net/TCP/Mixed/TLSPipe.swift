import Base
import CLinux
import Glibc

/// Carries what a client says by TLS to a server in the clear, and back.
///
/// Both ends are watched for changes, so each call goes on until nothing moves any more. What one end does not take
/// stays with the other one: no more than `room` and one piece wait in each direction.
final class TLSPipe {
    enum Step {
        /// Nothing moves until an end changes.
        case rest
        /// There is more to do, after others had their turn.
        case more
        case over
    }

    private static let room = 64 << 10
    private static let roundsPerCall = 8
    /// A client that was told of the end has so long to hang up.
    private static let farewell = Duration.seconds(2)
    /// What the server said last stays so long for a client that takes nothing of it.
    private static let patience = Duration.seconds(20)

    /// The client's end.
    let outside: Int32
    /// Ours of the pair of which the server has the other end.
    let inside: Int32
    /// Under which the ends are watched.
    var outsideToken: UInt32?
    var insideToken: UInt32?
    private let tls: SharedTLS
    /// On its way to the server.
    private var plain: [UInt8]
    /// On its way to the client.
    private var encrypted: [UInt8]
    private var clientEnded = false
    private var serverEnded = false
    private var isBroken = false
    private var hasToldServer = false
    /// Since the client was told of the end.
    private var toldClientAt: MonotonicTime?
    private var lastProgress: MonotonicTime
    /// Bytes that moved, over all.
    private var moved: UInt64 = 0

    /// - Parameter begun: what came by it and what has to be sent goes first.
    init(_ begun: BegunTLS, outside: Int32, inside: Int32, at now: MonotonicTime) {
        self.outside = outside
        self.inside = inside
        tls = begun.tls
        plain = begun.plain
        encrypted = begun.output
        lastProgress = now
    }

    /// Moves what can be moved.
    /// - Parameter buffer: to read into.
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
        // Nobody is there any more who would want it.
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

    /// - Returns: false if the other end is gone.
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
