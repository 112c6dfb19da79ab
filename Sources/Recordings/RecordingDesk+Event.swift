import Base
import Forwarding
import Store
import Transcoder

extension RecordingDesk {
    /// What is told of recordings that the desk began, and of taps that it opened: each once, but for key frames, which
    /// are asked for again, and what is not kept, which is looked at once a second.
    enum Event: InboxElement {
        case began(StreamID, String, RecordingContainer)
        case finished(StreamID, String, RecordingReport.Cause)
        case over(StreamID, String)
        case failed(StreamID, String, FileError)
        case tapEnded(StreamID, TapID)
        case keyFrameWanted(StreamID, InputID)
        /// Something that has ended is not on the disk yet.
        case unkept

        enum Topic: Hashable, Sendable {
            case beginning(String)
            case finish(String)
            case end(String)
            case failure(String)
            case tap(TapID)
            case keyFrame(InputID)
            case unkept
        }

        var topic: Topic? {
            switch self {
            case .began(_, let id, _): .beginning(id)
            case .finished(_, let id, _): .finish(id)
            case .over(_, let id): .end(id)
            case .failed(_, let id, _): .failure(id)
            case .tapEnded(_, let tap): .tap(tap)
            case .keyFrameWanted(_, let input): .keyFrame(input)
            case .unkept: .unkept
            }
        }

        var isNeeded: Bool {
            switch self {
            case .keyFrameWanted, .unkept: false
            default: true
            }
        }
    }
}
