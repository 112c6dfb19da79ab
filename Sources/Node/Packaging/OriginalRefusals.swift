import Base
import Forwarding
import Recordings
import Stage

/// The streams whose video could not be passed on in its own codec (other than H.264).
///
/// The `original` rendition of such a stream is not offered for a while, or until its video changes. Otherwise each
/// new player would start a packaging that ends in H.264, which `source` offers already.
struct OriginalRefusals {
    /// How long the rendition is not offered after a failure.
    static let refusalTime = Duration.seconds(600)
    /// How long after a change of the video a failure is not counted.
    ///
    /// Until the first key frame of the new video, the packager may still report what came before.
    static let settlingTime = Duration.seconds(10)

    private struct Refusal {
        let time: MonotonicTime
        /// The programme whose video could not be passed on.
        let programme: RecordingDesk.Programme?
    }

    private var refusals: [StreamID: Refusal] = [:]
    /// When the video of a stream last changed; kept for `settlingTime`.
    private var changes: [StreamID: MonotonicTime] = [:]

    /// Whether the `original` rendition of a stream may be offered.
    func mayTry(_ stream: StreamID) -> Bool { refusals[stream] == nil }

    /// Clears the refusal when a stream's programme changes, also while nothing packages the stream.
    mutating func update(_ stream: StreamID, to programme: RecordingDesk.Programme?) {
        guard let refusal = refusals[stream], refusal.programme != programme else { return }
        refusals[stream] = nil
    }

    /// The session whose video could not be passed on; nil without a refusal.
    func publisher(of stream: StreamID) -> SessionID? { refusals[stream]?.programme?.video?.session }

    /// Notes that other video comes from now on, to which an earlier refusal does not apply.
    mutating func expect(_ stream: StreamID, at now: MonotonicTime) {
        refusals[stream] = nil
        changes[stream] = now
    }

    /// Notes that the video of a programme could not be passed on.
    /// - Returns: false if the failure does not count, because what was packaged may be a stand-in for a publisher
    ///   who has just come back.
    mutating func refuse(
        _ stream: StreamID, _ programme: RecordingDesk.Programme?, at now: MonotonicTime
    ) -> Bool {
        guard changes[stream].map({ now >= $0 + Self.settlingTime }) ?? true else { return false }
        refusals[stream] = Refusal(time: now, programme: programme)
        return true
    }

    /// Forgets refusals and changes that have expired.
    mutating func advance(at now: MonotonicTime) {
        refusals = refusals.filter { now < $0.value.time + Self.refusalTime }
        changes = changes.filter { now < $0.value + Self.settlingTime }
    }
}
