import Base
import Forwarding
import Synchronization
import Transcoder

/// What a composition's job tells the node; media does not come this way.
enum CompositionEvent: Equatable, Sendable {
    /// The first packet of the first picture.
    case playable(JobID)
    case status(JobID, CompositionStatus)
    case keyFrameWanted(JobID, InputID)
    case lost(JobID)

    /// Which tells it.
    var job: JobID {
        switch self {
        case .playable(let job), .status(let job, _), .keyFrameWanted(let job, _), .lost(let job): job
        }
    }
}

/// Stands between the transcoder's thread and a worker: hands media on, and tells the node of the rest.
final class CompositionOutlet: Sendable {
    private struct State {
        var job: JobID?
        /// Events that came before the job's name was known.
        var early: [TranscoderSupervisor.JobEvent] = []
        var hasVideo = false
    }

    private let inlet: InjectionInlet
    private let tell: @Sendable (CompositionEvent) -> Void
    private let state = Mutex(State())

    init(_ inlet: InjectionInlet, tell: @escaping @Sendable (CompositionEvent) -> Void) {
        self.inlet = inlet
        self.tell = tell
    }

    func begin(_ job: JobID) {
        let early = state.withLock { state in
            state.job = job
            defer { state.early = [] }
            return state.early
        }
        for event in early { take(event) }
    }

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
        guard packet.source == 1, packet.layer == 1 else { return }
        let isFirst = state.withLock { state in
            defer { state.hasVideo = true }
            return !state.hasVideo
        }
        if isFirst { tell(.playable(job)) }
    }
}
