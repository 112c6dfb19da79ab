import Base
import Forwarding
import Store
import Transcoder

extension RecordingDesk {
    /// Events from transcoder jobs, files and taps.
    ///
    /// Each comes once, with two exceptions: requests for key frames are repeated, and `unkept` is raised every second
    /// while it applies.
    enum Event: InboxElement {
        case began(StreamID, String, RecordingContainer)
        case over(StreamID, String)
        case failed(StreamID, String, FileError)
        case tapEnded(StreamID, TapID)
        case keyFrameWanted(StreamID, InputID)
        /// An entry of the stream that has ended is not on the disk yet.
        case unkept(StreamID)

        /// Waiting events with equal topics replace each other in the inbox.
        enum Topic: Hashable, Sendable {
            case beginning(String)
            case end(String)
            case failure(String)
            case tap(TapID)
            case keyFrame(InputID)
            case unkept(StreamID)
        }

        /// Events of a stream are handled in order, those of different streams independently.
        var stream: StreamID {
            switch self {
            case .began(let stream, _, _), .over(let stream, _), .failed(let stream, _, _),
                .tapEnded(let stream, _), .keyFrameWanted(let stream, _), .unkept(let stream):
                stream
            }
        }

        var topic: Topic? {
            switch self {
            case .began(_, let id, _): .beginning(id)
            case .over(_, let id): .end(id)
            case .failed(_, let id, _): .failure(id)
            case .tapEnded(_, let tap): .tap(tap)
            case .keyFrameWanted(_, let input): .keyFrame(input)
            case .unkept(let stream): .unkept(stream)
            }
        }

        /// Whether the event must not be dropped.
        var isNeeded: Bool {
            switch self {
            case .keyFrameWanted, .unkept: false
            default: true
            }
        }
    }
}
