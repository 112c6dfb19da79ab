import Base
import Net
import Synchronization

/// A stream that is published by SRT.
///
/// The film's thread sends; the run's task reads the state.
final class SRTPublisher: Sendable {
    /// The state of the connection.
    struct Values: Equatable, Sendable {
        /// When the server accepted the connection; nil before.
        var live: MonotonicTime?
        /// Counters of the SRT library, as of the last look.
        var sending = SRTCaller.Sending()
        /// Messages that did not fit into the library's buffer.
        var left: UInt64 = 0
        /// Whether anything was sent.
        var hasBegun = false
        /// Why the connection ended, in words; nil while it is open.
        var failure: String?

        var isOver: Bool { failure != nil }
    }

    /// When it began to connect.
    let asked: MonotonicTime
    private let caller: SRTCaller
    private let values = Mutex(Values())

    init(to destination: SRTDestination, at now: MonotonicTime) throws(SRTCaller.Failure) {
        asked = now
        caller = try SRTCaller(
            host: destination.host, port: destination.port, streamID: destination.streamID.exposed,
            destination.settings)
    }

    var current: Values { values.withLock { $0 } }

    /// Updates the state; called every few milliseconds.
    func look(at now: MonotonicTime) {
        let (phase, sending) = (caller.phase, caller.sending)
        values.withLock { values in
            if let sending { values.sending = sending }
            switch phase {
            case .connecting: break
            case .connected: values.live = values.live ?? now
            case .over(let reason): values.failure = values.failure ?? reason
            }
        }
    }

    /// Sends packets, starting with a key frame once connected.
    ///
    /// A server may drop pictures that come later than their sound.
    /// - Parameters:
    ///   - packets: of MPEG-TS, in whole packets.
    ///   - isKeyFrame: whether a decoder can start with them.
    func send(_ packets: [UInt8], isKeyFrame: Bool) {
        let isWanted = values.withLock { values in
            guard values.live != nil, !values.isOver, values.hasBegun || isKeyFrame else { return false }
            values.hasBegun = true
            return true
        }
        guard isWanted else { return }
        // As many transport packets in a message as fit.
        var place = 0
        while place < packets.count {
            let end = min(place + SRTCaller.messageLength, packets.count)
            if caller.send(Array(packets[place..<end])) == .left { values.withLock { $0.left += 1 } }
            place = end
        }
    }

    func close() { caller.close() }
}
