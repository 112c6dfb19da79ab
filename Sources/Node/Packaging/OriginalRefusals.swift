import Base
import Forwarding
import Recordings
import Stage

/// Which streams' pictures could not be passed on as they are, in another codec than H.264.
///
/// Nobody is offered them for a while, or until other pictures come.
struct OriginalRefusals {
    /// Nobody is offered pictures as they are for so long after they could not be passed on.
    static let refusalTime = Duration.seconds(600)
    /// What is packaged may still be what came before, so long after other pictures came: until their first key frame.
    static let settlingTime = Duration.seconds(10)

    private struct Refusal {
        let time: MonotonicTime
        /// What could not be passed on.
        let programme: RecordingDesk.Programme?
    }

    private var refusals: [StreamID: Refusal] = [:]
    private var changes: [StreamID: MonotonicTime] = [:]

    /// Whether a stream's pictures may be tried as they are.
    func mayTry(_ stream: StreamID) -> Bool { refusals[stream] == nil }

    /// Takes in what viewers get of a stream, also where nobody takes it.
    mutating func update(_ stream: StreamID, to programme: RecordingDesk.Programme?) {
        guard let refusal = refusals[stream], refusal.programme != programme else { return }
        refusals[stream] = nil
    }

    /// The session whose pictures could not be passed on.
    func publisher(of stream: StreamID) -> SessionID? { refusals[stream]?.programme?.video?.session }

    /// Other pictures come from now on, which may be passed on, whatever was found out of those before.
    mutating func expect(_ stream: StreamID, at now: MonotonicTime) {
        refusals[stream] = nil
        changes[stream] = now
    }

    /// What is packaged of a programme was not passed on.
    /// - Returns: false where it may be what stood in for a publisher who has just come back.
    mutating func refuse(
        _ stream: StreamID, _ programme: RecordingDesk.Programme?, at now: MonotonicTime
    ) -> Bool {
        guard changes[stream].map({ now >= $0 + Self.settlingTime }) ?? true else { return false }
        refusals[stream] = Refusal(time: now, programme: programme)
        return true
    }

    /// Forgets what has passed.
    mutating func advance(at now: MonotonicTime) {
        refusals = refusals.filter { now < $0.value.time + Self.refusalTime }
        changes = changes.filter { now < $0.value + Self.settlingTime }
    }
}
