import Base
import Forwarding
import Transcoder

extension PackagingDesk {
    /// What other threads report to the desk: transcoder jobs by the desk's own numbers, taps, and the shelf.
    enum Event: InboxElement {
        /// What a job has made, at the rate that the transcoder limits; no report replaces another.
        case report(Packaging.Key, UInt64, PackagingReport)
        /// The job ended, or the transcoder died.
        case over(Packaging.Key, UInt64)
        /// A tap is closed, or its track has ended.
        case tapEnded(Packaging.Key, TapID)
        /// The decoder of an input cannot continue without a key frame.
        case keyFrameWanted(Packaging.Key, InputID)
        /// The segment with this name is on disk.
        case stored(Packaging.Key, String)

        enum Topic: Hashable, Sendable {
            case end(UInt64)
            case tap(TapID)
            case keyFrame(InputID)
        }

        /// Reports and stored segments have no topic, because a later one does not replace an earlier one.
        var topic: Topic? {
            switch self {
            case .report, .stored: nil
            case .over(_, let job): .end(job)
            case .tapEnded(_, let tap): .tap(tap)
            case .keyFrameWanted(_, let input): .keyFrame(input)
            }
        }

        /// Whether the event is queued even beyond the inbox's limit.
        ///
        /// A dropped part leaves a gap, which the next time line repairs; but nothing repeats what begins a time line
        /// or changes its format. `stored` is needed, and is bounded by the bytes that may wait for the disk.
        var isNeeded: Bool {
            switch self {
            case .over, .tapEnded, .stored, .report(_, _, .began), .report(_, _, .format): true
            case .report, .keyFrameWanted: false
            }
        }
    }
}
