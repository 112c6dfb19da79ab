import Base
import Forwarding
import Synchronization
import Transcoder

/// What a composition's job reports to the node; media does not pass through these events.
enum CompositionEvent: Equatable, Sendable {
    /// The first packet of the large picture was sent.
    case playable(JobID)
    /// How fast and how well the job composes; comes every second.
    case status(JobID, CompositionStatus)
    /// A decoder needs a key frame from the publisher of an input.
    case keyFrameWanted(JobID, InputID)
    /// The job has ended or its process has died; the last event of a job.
    case lost(JobID)

    /// The job that reports it.
    var job: JobID {
        switch self {
        case .playable(let job), .status(let job, _), .keyFrameWanted(let job, _), .lost(let job): job
        }
    }
}

/// Passes a job's packets from the transcoder's thread to a worker, and its other events to the node.
///
/// Media goes directly to the worker's mailbox, so that it does not wait for the node's actor.
final class CompositionOutlet: Sendable {
    private struct State {
        /// Nil until `begin`.
        var job: JobID?
        /// Events that came before the job's number was known, in order; 64 at most.
        var early: [TranscoderSupervisor.JobEvent] = []
        /// Whether the large picture has begun.
        var hasVideo = false
    }

    private let inlet: InjectionInlet
    /// Called on the transcoder's thread; must not block.
    private let tell: @Sendable (CompositionEvent) -> Void
    private let state = Mutex(State())

    /// - Parameter tell: called on the transcoder's thread; must not block.
    init(_ inlet: InjectionInlet, tell: @escaping @Sendable (CompositionEvent) -> Void) {
        self.inlet = inlet
        self.tell = tell
    }

    /// Sets the job's number, and passes on the events that waited for it.
    ///
    /// The transcoder may report events of a job before the call that began the job has returned its number.
    func begin(_ job: JobID) {
        let early = state.withLock { state in
            state.job = job
            defer { state.early = [] }
            return state.early
        }
        for event in early { take(event) }
    }

    /// Handles an event of the job; keeps it while the job's number is not known.
    func take(_ event: TranscoderSupervisor.JobEvent) {
        let job = state.withLock { state -> JobID? in
            if state.job == nil, state.early.count < 64 { state.early.append(event) }
            return state.job
        }
        guard let job else { return }
        switch event {
        case .packet(let packet): take(packet, of: job)
        case .report(let bytes):
            if let status = CompositionStatus(bytes) { tell(.status(job, status)) }
        case .keyFrameWanted(let input): tell(.keyFrameWanted(job, input))
        case .lost, .ended: tell(.lost(job))
        }
    }

    private func take(_ packet: OutputPacket, of job: JobID) {
        var packets = InjectedPackets()
        packets.append(
            packet.bytes.span, source: Int(packet.source), layer: Int(packet.layer),
            captured: packet.captured)
        inlet.send(packets)
        // Source 1 is the picture and layer 1 its full size, by the order in `InjectionOpening` and in `rids`.
        guard packet.source == 1, packet.layer == 1 else { return }
        let isFirst = state.withLock { state in
            defer { state.hasVideo = true }
            return !state.hasVideo
        }
        if isFirst { tell(.playable(job)) }
    }
}
