import Base
import Net
import Synchronization

/// One stream that is published by SRT.
final class SRTPublisher: Sendable {
    /// What became of it.
    struct Values: Equatable, Sendable {
        /// When the server took the call.
        var live: MonotonicTime?
        /// As the library counts, and as it was last known.
        var sending = SRTCaller.Sending()
        /// Messages that the library had no room for.
        var left: UInt64 = 0
        /// Whether something was sent.
        var hasBegun = false
        /// Why it is over, in words; nil while it is not.
        var failure: String?

        var isOver: Bool { failure != nil }
    }

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

    /// Sees how it stands; called every few milliseconds.
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

    /// Begins with a key frame once it is connected: a picture that comes later than its sound may be left out.
    /// - Parameters:
    ///   - packets: of MPEG-TS.
    ///   - isKeyFrame: whether decoders can begin with them.
    func send(_ packets: [UInt8], isKeyFrame: Bool) {
        let isWanted = values.withLock { values in
            guard values.live != nil, !values.isOver, values.hasBegun || isKeyFrame else { return false }
            values.hasBegun = true
            return true
        }
        guard isWanted else { return }
        var place = 0
        while place < packets.count {
            let end = min(place + SRTCaller.messageLength, packets.count)
            if caller.send(Array(packets[place..<end])) == .left { values.withLock { $0.left += 1 } }
            place = end
        }
    }

    func close() { caller.close() }
}
