import Base
import Forwarding
import Transcoder

extension PackagingDesk {
    /// What is told of jobs that the desk began, by the desk's own numbers, and of taps that it opened.
    enum Event: InboxElement {
        /// As often as the transcoder's limits allow; each counts.
        case report(Packaging.Key, UInt64, PackagingReport)
        case over(Packaging.Key, UInt64)
        case tapEnded(Packaging.Key, TapID)
        case keyFrameWanted(Packaging.Key, InputID)
        /// A segment is on the disk, by its name.
        case stored(Packaging.Key, String)

        enum Topic: Hashable, Sendable {
            case end(UInt64)
            case tap(TapID)
            case keyFrame(InputID)
        }

        var topic: Topic? {
            switch self {
            case .report, .stored: nil
            case .over(_, let job): .end(job)
            case .tapEnded(_, let tap): .tap(tap)
            case .keyFrameWanted(_, let input): .keyFrame(input)
            }
        }

        /// A part that is dropped is a gap, which the next time line makes good.
        ///
        /// What is written is bounded by what may wait for that.
        var isNeeded: Bool {
            switch self {
            case .over, .tapEnded, .stored: true
            case .report, .keyFrameWanted: false
            }
        }
    }
}
