import Base
import Transcoder

/// Takes the events of the job that makes one part: bytes go to the file, everything else to the desk's inbox.
///
/// Called on the transcoder's thread.
struct PartListener: Sendable {
    let stream: StreamID
    let entry: RecordingEntry
    let file: RecordingFile
    let shelf: RecordingShelf
    let inbox: Inbox<RecordingDesk.Event>
    let now: @Sendable () -> Moment

    /// Takes one event.
    func receive(_ event: TranscoderSupervisor.JobEvent) {
        switch event {
        case .report(let bytes): receive(try? RecordingReport(bytes))
        case .keyFrameWanted(let input): inbox.put(.keyFrameWanted(stream, input))
        case .ended, .lost: inbox.put(.over(stream, entry.id))
        case .packet: break
        }
    }

    /// - Parameter report: nil if it cannot be read.
    private func receive(_ report: RecordingReport?) {
        switch report {
        case .began(let container, _, _, _):
            let name = container.fileExtension
            file.begin(shelf.path(of: entry, name), name)
            inbox.put(.began(stream, entry.id, container))
        case .bytes(let offset, let bytes): file.write(bytes, at: offset)
        case .flushed(let milliseconds):
            file.note(milliseconds, at: now().wall)
            file.flush(milliseconds)
        case .finished(let milliseconds, let cause):
            if cause != .failed { file.flush(milliseconds, isEnd: true) }
        case nil: break
        }
    }
}
