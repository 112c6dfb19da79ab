import Base
import Forwarding
import Store
import Synchronization
import Transcoder

extension ClipDesk {
    /// Events from transcoder jobs, files and taps, in the order in which the desk handles them.
    enum Event: InboxElement {
        case report(StreamID, ClipReport)
        case failed(StreamID, clip: UInt64, FileError)
        /// The clip's time is over.
        case late(StreamID, clip: UInt64)
        case over(StreamID, job: UInt64)
        case tapEnded(StreamID, TapID)
        case keyFrameWanted(StreamID, InputID)

        /// Waiting events with equal topics replace each other in the inbox.
        enum Topic: Hashable, Sendable {
            case report(UInt64, isEnd: Bool)
            case failure(UInt64)
            case lateness(UInt64)
            case job(UInt64)
            case tap(TapID)
            case keyFrame(InputID)
        }

        /// Events of a stream are handled in order, those of different streams independently.
        var stream: StreamID {
            switch self {
            case .report(let stream, _), .failed(let stream, _, _), .late(let stream, _),
                .over(let stream, _), .tapEnded(let stream, _), .keyFrameWanted(let stream, _):
                stream
            }
        }

        /// Clips and jobs are numbered across all streams, so the numbers suffice.
        var topic: Topic? {
            switch self {
            case .report(_, let report): .report(report.number, isEnd: report.isEnd)
            case .failed(_, let clip, _): .failure(clip)
            case .late(_, let clip): .lateness(clip)
            case .over(_, let job): .job(job)
            case .tapEnded(_, let tap): .tap(tap)
            case .keyFrameWanted(_, let input): .keyFrame(input)
            }
        }

        /// Each event comes once and must not be dropped; requests for key frames are repeated, and so is lateness.
        var isNeeded: Bool {
            switch self {
            case .keyFrameWanted, .late: false
            case .report, .failed, .over, .tapEnded: true
            }
        }
    }
}

extension ClipReport {
    /// Whether this is the last report on its clip.
    fileprivate var isEnd: Bool {
        switch content {
        case .accepted, .bytes: false
        case .refused, .finished, .failed: true
        }
    }
}

/// The files of clips that are being made, for the thread that receives their bytes from the transcoder.
final class ClipFiles: Sendable {
    private let files = Mutex<[UInt64: RecordingFile]>([:])

    subscript(_ clip: UInt64) -> RecordingFile? {
        get { files.withLock { $0[clip] } }
        set { files.withLock { $0[clip] = newValue } }
    }
}
