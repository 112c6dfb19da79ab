import Base
import Forwarding
import Net
import Peer
import Synchronization
import Transcoder
import Wire

/// One stream's composition as the node knows it: the job in the transcoder, what feeds it, and what comes of it.
struct ComposedProgramme {
    /// Of a track that is fed in.
    struct Feed {
        let input: InputID
        let tap: TapID
        let track: PublishedTrack
        var maximumHeight: Int?
    }

    let inlet: InjectionInlet
    var tracks: [PublishedTrack] = []
    /// Nil between two lives of the transcoder.
    var job: JobID?
    var feeds: [TrackKey: Feed] = [:]
    var speakers: [ComposedSpeaker]
    var settings = CompositionSettings()
    /// Whether viewers may have it: its first key frame is there.
    var isPlayable = false
    /// No longer needed since; kept for a while, because people come back.
    var idleSince: MonotonicTime?
    /// Nobody has watched it since.
    var unwatchedSince: MonotonicTime?
    var status = CompositionStatus()

    /// The mix.
    static let audio = SourcePlan(
        mid: "a", kind: .audio, formats: [MediaFormat(codec: .opus, payloadType: 111)])
    /// The picture, with its small copy first.
    static let video = SourcePlan(
        mid: "v", kind: .video, formats: [MediaFormat(codec: .vp8, payloadType: 96)], rids: ["small", "full"])

    /// What the composer is told of a stage.
    func scene(name: (ComposedSpeaker) -> String) -> CompositionScene {
        CompositionScene(
            settings: settings,
            speakers: speakers.map { speaker in
                var person = CompositionSpeaker(
                    id: "\(speaker.id.session.label)/\(speaker.id.screen ?? "")", name: name(speaker))
                person.video = speaker.video.flatMap { feeds[$0.key]?.input.number }
                person.audio = speaker.audio.flatMap { feeds[$0.key]?.input.number }
                person.hasPicture = speaker.hasPicture && person.video != nil
                person.isSpeaking = speaker.isSpeaking
                person.isScreen = speaker.isScreen
                person.arrival = speaker.arrival
                return person
            })
    }
}

/// What a composition's job tells the node; media does not come this way.
enum CompositionEvent: Sendable {
    /// The first packet of the first picture.
    case playable(JobID)
    case status(JobID, CompositionStatus)
    case keyFrameWanted(JobID, InputID)
    case lost(JobID)
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
