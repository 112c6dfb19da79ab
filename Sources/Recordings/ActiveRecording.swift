import Base
import Forwarding
import Transcoder

/// A recording that is under way: the part that is being written now.
struct ActiveRecording {
    var entry: RecordingEntry
    /// The ID that the IDs of all its parts begin with.
    let base: String
    /// The transcoder's job that makes the file; nil while there is none.
    var job: JobID?
    /// Nil until a job has been started.
    var file: RecordingFile?
    var inputs: ProgrammeInputs
    /// Whether its entry is on the disk: before that the disk may refuse it, and then it has never been.
    var hasBegun = false
    /// Why the recording ends; nil while it is to go on, in another part if necessary.
    var reason: RecordingEntry.EndReason?
    /// When the part is completed without waiting for the transcoder any longer.
    var deadline: MonotonicTime?
    /// When the transcoder is asked for a job again; nil while there is one.
    var retryAt: MonotonicTime?
    /// Whether the file is being completed, so that this happens once.
    var isConcluding = false
}
