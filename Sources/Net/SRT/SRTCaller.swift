import Base
import CSRT
import CLinux
import Synchronization

/// A call to a server by SRT, by which something is sent.
///
/// The library has threads of its own, which connect, send, and send again what got lost: nothing here blocks but the
/// look-up of a name. May be used by any thread.
package final class SRTCaller: Sendable {
    package enum Phase: Equatable, Sendable {
        case connecting
        case connected
        /// Why, in the library's words.
        case over(String)
    }

    /// What the library counts, since the call began.
    package struct Sending: Equatable, Sendable {
        /// Packets, each once.
        package var sent = 0
        /// Packets that were sent again.
        package var retransmitted = 0
        /// Packets that the other end missed.
        package var lost = 0
        /// Packets that were too late to be sent.
        package var dropped = 0
        /// With all that SRT adds, in bytes.
        package var bytes = 0
        /// Packets that the other end has not acknowledged yet.
        package var waiting = 0
        /// In milliseconds.
        package var roundTrip = 0.0

        package init() {}
    }

    /// Why nobody is called.
    package struct Failure: Error, CustomStringConvertible, Sendable {
        package let description: String
    }

    /// What became of a message.
    package enum Outcome: Equatable, Sendable {
        case taken
        /// The library has no room: the server takes too little.
        case left
        case over
    }

    /// Bytes of a message: seven packets of MPEG-TS, as is usual.
    package static let messageLength = 1_316

    private let socket: Int32
    private let isClosed = Atomic(false)

    /// Begins to call a server; blocks while its name is looked up.
    /// - Parameters:
    ///   - streamID: what the server is told, up to 512 bytes.
    ///   - settings: its passphrase, and the least latency.
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

    package var phase: Phase {
        switch csrt_connected(socket) {
        case 0: .connecting
        case 1...: .connected
        default: .over(unsafe String(cString: csrt_reason(socket)))
        }
    }

    /// Hands a message over; what is lost is sent again by itself.
    /// - Parameter message: of `messageLength` bytes at most.
    package func send(_ message: [UInt8]) -> Outcome {
        let result = unsafe csrt_send(socket, message, Int32(clamping: message.count))
        return result == 0 ? .taken : result > 0 ? .left : .over
    }

    /// Nil where the connection is gone.
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

    /// Ends the connection; what waits is lost.
    package func close() {
        if !isClosed.exchange(true, ordering: .relaxed) { csrt_close(socket) }
    }
}
