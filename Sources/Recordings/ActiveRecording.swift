import Base
import Forwarding
import Transcoder

/// A recording that is under way: the part that is being written.
struct ActiveRecording {
    var entry: RecordingEntry
    let base: String
    var job: JobID?
    var file: RecordingFile?
    var inputs: ProgrammeInputs
    var cause = RecordingReport.Cause.failed
    /// Why it ends, once that is decided.
    var reason: RecordingEntry.EndReason?
    /// When it is ended without the transcoder's help.
    var deadline: MonotonicTime?
    /// When the transcoder is asked again.
    var retryAt: MonotonicTime?
    var isConcluding = false
}
