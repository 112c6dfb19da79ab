import Base
import Crypto
import Forwarding
import Interaction
import Peer
import Stage
import Transcoder

/// What has to be done for streams, in the order in which it was decided.
///
/// Nothing of it waits, but for what stages are told, which is done after everything else.
enum LiveAction {
    /// To a worker. That it takes no more is to be logged with the stream; nil for what is not worth a line.
    case post(WorkerCommand, worker: Int, of: StreamID?)
    /// To all workers; one that takes nothing any more has nothing that this would change.
    case postToAll(WorkerCommand)
    /// A worker is to say when it has done everything before this; `LiveStreams.pass` follows at once if it takes
    /// nothing any more.
    case fence(UInt64, worker: Int)
    /// Make tracks on a worker; `LiveStreams.opened` follows, whether it takes that or not.
    case inject(InjectionOpening, worker: Int)
    case produce(Production)
    /// What comes once everything before this is done; see `LiveStreams.resume`.
    case resume(Step)
    /// A viewer of the feed is somewhere else now.
    case count(PresenceChange)
    /// Everybody is to look again who shows or keeps what viewers get of a stream.
    case programmeChanged(StreamID)
    /// To the stage of a stream, if there is one.
    case notify(StageNotice, StreamID)
    case report(LiveReport)

    /// What the transcoder has to do.
    enum Production {
        /// Begin a job that fills an injection; `LiveStreams.began` follows if there is one.
        case beginComposition(StreamID, InjectionID, worker: Int, CompositionSettings)
        /// The same for a pause picture.
        case beginPausePicture(StreamID, PauseDesk.Run, InjectionID, worker: Int, PauseDesk.Picture)
        /// The same for renditions of a track.
        case beginRenditions(TrackKey, RenditionDesk.Run, InjectionID)
        case end(JobID)
        case command(JobID, [UInt8])
        /// Hand a track to a job; `LiveStreams.fed` follows if that can be done.
        case feed(ComposedProgramme.Want, JobID, Injections.Owner)
        /// No more comes of that.
        case close(InputID)
        /// What a host chose need not be kept.
        case forgetPausePicture(StreamID)
    }

    /// What goes on once other things are done.
    enum Step {
        /// A composition's job is told who is to be seen.
        case show(StreamID)
        /// Viewers may have so much of a composition.
        case give(StreamID, [PublishedTrack])
    }
}

/// What a stage hears of sessions.
enum StageNotice {
    case connect(Stage.Sender?, SessionID)
    case disconnect(SessionID)
    /// What viewers would get from now on; nil for nothing.
    case setSource(Stage.Source?)
    /// Less of what a session's client has to send comes than should.
    case weakUplink(SessionID)
    /// What a session's client wants, who is told of a refusal.
    case submit(Stage.Command, Stage.Sender, SessionID)
    /// What a session's client says as one of the audience, who is told what comes of it.
    case interact(Interaction.Command, Stage.Sender, SessionID)
    /// A session's client wants to hear what is new of the audience.
    case follow(Stage.Sender?, SessionID)
    /// A session's client may have missed some of that, and reads again.
    case refresh(SessionID)
}

/// What an operator hears of streams.
enum LiveReport {
    case connected(SessionRecord, SRTPProfile?, TransportAddress?)
    case closed(SessionRecord, reason: String)
    case source(SessionRecord)
    case sourceGone(StreamID, reason: String)
    case composition(CompositionDesk.Report, StreamID)
    case pauseEnded(StreamID)
    /// Of what a session sends; no stream where that has ended.
    case renditions(RenditionDesk.Report, SessionID, StreamID?)
}
