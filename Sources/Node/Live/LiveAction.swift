import Base
import Crypto
import Forwarding
import Interaction
import Peer
import Stage
import Transcoder

/// What has to be done for streams, in the order of the decisions.
///
/// None of it has to be awaited except for the effect of `notify`, which comes after everything else.
enum LiveAction {
    /// Post a command to a worker. If the worker accepts no more, that is logged with the stream; nil for no log
    /// line.
    case post(WorkerCommand, worker: Int, of: StreamID?)
    /// Post a command to all workers; one that accepts no more has nothing that the command would change.
    case postToAll(WorkerCommand)
    /// Make a worker report when it has performed everything before this.
    ///
    /// If the worker accepts no more, `LiveStreams.pass` follows immediately.
    case fence(UInt64, worker: Int)
    /// Make tracks on a worker; `LiveStreams.opened` follows, whether the worker accepts it or not.
    case inject(InjectionOpening, worker: Int)
    case produce(Production)
    /// Continue after everything before this is done; see `LiveStreams.resume`.
    case resume(Step)
    /// A feed viewer has moved to another stream.
    case count(PresenceChange)
    /// What viewers receive of a stream may have changed, for everything that shows or records it.
    case programmeChanged(StreamID)
    /// Notify the stage of a stream, if there is one.
    case notify(StageNotice, StreamID)
    case report(LiveReport)

    /// A task for the transcoder.
    enum Production {
        /// Begin a job that fills an injection; `LiveStreams.began` follows if there is one.
        case beginComposition(StreamID, InjectionID, worker: Int, CompositionSettings)
        /// The same for a pause picture.
        case beginPausePicture(StreamID, PauseDesk.Run, InjectionID, worker: Int, PauseDesk.Picture)
        /// The same for renditions of a track.
        case beginRenditions(TrackKey, RenditionDesk.Run, InjectionID)
        case end(JobID)
        case command(JobID, [UInt8])
        /// Feed a track to a job; `LiveStreams.fed` follows if that is possible.
        case feed(ComposedProgramme.Want, JobID, Injections.Owner)
        /// Close an input, which gets no more packets.
        case close(InputID)
        /// Delete the picture that a host has chosen for pauses.
        case forgetPausePicture(StreamID)
    }

    /// A decision that is made once other actions are done.
    enum Step {
        /// Send a composition's job the current scene.
        case show(StreamID)
        /// Set the tracks that viewers receive of a composition.
        case give(StreamID, [PublishedTrack])
    }
}

/// What a stage is notified of about sessions.
enum StageNotice: Sendable {
    case connect(Stage.Sender?, SessionID)
    case disconnect(SessionID)
    /// What viewers would receive from now on; nil for nothing.
    case setSource(Stage.Source?)
    /// The server receives less from a session's client than it should.
    case weakUplink(SessionID)
    /// A command from a session's client, who is notified only of a refusal.
    case submit(Stage.Command, Stage.Sender, SessionID)
    /// A command from a session's client as a member of the audience, who is answered in any case.
    case interact(Interaction.Command, Stage.Sender, SessionID)
    /// A session's client subscribes to news of the audience.
    case follow(Stage.Sender?, SessionID)
    /// A session's client may have missed news of the audience, and can receive again.
    case refresh(SessionID)
}

/// What is logged for operators.
enum LiveReport {
    case connected(SessionRecord, SRTPProfile?, TransportAddress?)
    case closed(SessionRecord, reason: String)
    case source(SessionRecord)
    case sourceGone(StreamID, reason: String)
    case composition(CompositionDesk.Report, StreamID)
    case pauseEnded(StreamID)
    /// About renditions of what a session sends; without a stream if the session has ended.
    case renditions(RenditionDesk.Report, SessionID, StreamID?)
}
