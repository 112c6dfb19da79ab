import Base
import CSRT
import CLinux
import Synchronization

/// An outgoing SRT connection, which sends media to a server.
///
/// The library connects, sends and retransmits on threads of its own, so nothing here blocks except the name lookup
/// in `init`. May be used from any thread.
package final class SRTCaller: Sendable {
    /// How far the connection has come.
    package enum Phase: Equatable, Sendable {
        /// The handshake is under way.
        case connecting
        /// Messages can be sent.
        case connected
        /// The connection failed or ended, with the library's reason.
        case over(String)
    }

    /// The library's statistics since the connection began.
    package struct Sending: Equatable, Sendable {
        /// Packets sent, without retransmissions.
        package var sent = 0
        /// Packets that were retransmitted.
        package var retransmitted = 0
        /// Packets that the other end reported as missing.
        package var lost = 0
        /// Packets that were dropped because it was too late to send them.
        package var dropped = 0
        /// Bytes sent, with SRT's own overhead.
        package var bytes = 0
        /// Packets that the other end has not acknowledged yet.
        package var waiting = 0
        /// Round-trip time in milliseconds.
        package var roundTrip = 0.0

        /// All zero.
        package init() {}
    }

    /// Why no connection could be begun.
    package struct Failure: Error, CustomStringConvertible, Sendable {
        /// For the operator, in English.
        package let description: String
    }

    /// The result of sending a message.
    package enum Outcome: Equatable, Sendable {
        /// Accepted by the library.
        case taken
        /// Not accepted, because the library's buffer is full: the server receives too slowly.
        case left
        /// The connection is gone.
        case over
    }

    /// Bytes of a full message: seven MPEG-TS packets of 188 bytes, as is usual.
    package static let messageLength = 1_316

    private let socket: Int32
    private let isClosed = Atomic(false)

    /// Begins to connect; blocks while the host name is resolved.
    /// - Parameters:
    ///   - streamID: sent to the server in the handshake, up to 512 bytes.
    ///   - settings: the passphrase and the minimum latency.
    /// - Throws: if the host has no address or the library refuses.
    package init(
        host: String, port: UInt16, streamID: String, _ settings: SRTServerSettings
    ) throws(Failure) {
        guard let address = NameLookup.addresses(of: host).first else {
            throw Failure(description: "there is no host \(host)")
        }
        let remote = clinux_address(TransportAddress(ip: address, port: port, transport: .udp))
        func call(_ passphrase: UnsafePointer<CChar>?) -> Int32 {
            let options = unsafe csrt_options(
                passphrase: passphrase, latency: Int32(clamping: settings.latency), backlog: 0)
            return unsafe csrt_call(remote, options, streamID)
        }
        socket =
            if let passphrase = settings.passphrase {
                unsafe passphrase.exposed.withCString { unsafe call($0) }
            } else { call(nil) }
        guard socket >= 0 else { throw Failure(description: "SRT does not begin: error \(-socket)") }
    }

    deinit {
        close()
    }

    /// Whether the handshake is done, and why the connection ended; asks the library.
    package var phase: Phase {
        switch csrt_connected(socket) {
        case 0: .connecting
        case 1...: .connected
        default: .over(unsafe String(cString: csrt_reason(socket)))
        }
    }

    /// Passes a message to the library without waiting; it retransmits what gets lost.
    /// - Parameter message: at most `messageLength` bytes.
    package func send(_ message: [UInt8]) -> Outcome {
        let result = unsafe csrt_send(socket, message, Int32(clamping: message.count))
        return result == 0 ? .taken : result > 0 ? .left : .over
    }

    /// Current statistics; nil if the connection is gone.
    package var sending: Sending? {
        var numbers = csrt_sending()
        guard unsafe csrt_sending_statistics(socket, &numbers) == 0 else { return nil }
        var sending = Sending()
        sending.sent = Int(numbers.sent)
        sending.retransmitted = Int(numbers.retransmitted)
        sending.lost = Int(numbers.lost)
        sending.dropped = Int(numbers.dropped)
        sending.bytes = Int(clamping: numbers.bytes)
        sending.waiting = Int(numbers.waiting)
        sending.roundTrip = numbers.round_trip_milliseconds
        return sending
    }

    /// Closes the connection; messages that still wait are lost.
    package func close() {
        if !isClosed.exchange(true, ordering: .relaxed) { csrt_close(socket) }
    }
}
