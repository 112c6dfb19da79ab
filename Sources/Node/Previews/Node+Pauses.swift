import Base
import Forwarding
import Net
import Peer
import Stage
import Synchronization
import Transcoder
import Wire

/// The pause picture of one stream, while its viewers get it or are about to.
struct PausedProgramme {
    let inlet: InjectionInlet
    var track: PublishedTrack?
    /// Nil between two lives of the transcoder.
    var job: JobID?
    /// Whether its first key frame is on its way.
    var isPlayable = false

    static let plan = SourcePlan(
        mid: "v", kind: .video, formats: [MediaFormat(codec: .vp8, payloadType: 96)])
}

/// What a pause picture's job tells the node; media goes straight to the worker.
enum PauseEvent: Sendable {
    case playable
    case lost
}

/// Pause pictures: viewers see one while whoever provides the programme has no camera on.
extension Node {
    /// Bytes of a picture that a host may choose.
    package static let pausePictureLimit = 160 << 10

    /// Takes in what hosts chose before the server was started again.
    func beginPausePictures() async {
        let kept = await pauseShelf?.load(limit: Self.pausePictureLimit, total: Self.pausePictureMemory)
        pausePictures = kept ?? [:]
    }

    /// Looks who is away and who is back; called every second.
    func advancePausePictures() async {
        guard transcoder != nil, !isStopping else { return }
        for stream in Array(streams.keys) {
            let isWanted = await wantsPausePicture(stream)
            if isWanted, pauses[stream] == nil { await beginPause(of: stream) }
            if !isWanted, pauses[stream] != nil { endPause(of: stream) }
        }
        for stream in Array(pauses.keys) where streams[stream] == nil { endPause(of: stream) }
        for stream in Array(pausePictures.keys) where directory[stream]?.state == .ended {
            pausePictures[stream] = nil
            _ = await pauseShelf?.set(nil, of: stream)
        }
        for (stream, pause) in pauses where pause.job == nil { await beginPauseJob(of: stream) }
    }

    /// Whether the programme is somebody's own picture, and that is off.
    ///
    /// A shared screen goes on without its owner's camera, and a composition has cards of its own.
    private func wantsPausePicture(_ stream: StreamID) async -> Bool {
        guard let publisher = streams[stream]?.publisher, let record = sessions[publisher] else {
            return false
        }
        let room = rooms[stream]
        if let room, room.programmeTrack(.video) != nil {
            guard !room.showsScreen, let shown = room.programmeSession(.video).flatMap({ sessions[$0] })
            else {
                return false
            }
            return await hosts[stream]?.isPictureOff(of: shown.request.participant) == true
                || room.hasLostPicture(of: shown.id)
        }
        guard record.plan.sources.contains(where: { $0.kind == .video }) else { return false }
        if await hosts[stream]?.isPictureOff() == true { return true }
        guard let room, record.request.isOnStage else { return false }
        return room.hasLostPicture(of: publisher)
    }

    /// Programmes whose picture is a pause picture now.
    package var pausedCount: Int { pauses.values.count { $0.isPlayable } }

    private func beginPause(of stream: StreamID) async {
        guard await pauseFile(of: stream) != nil, pauses[stream] == nil,
            let inlet = openInjection(
                [PausedProgramme.plan], events: { node, event in node.takePause(event, of: stream) })
        else { return }
        pauses[stream] = PausedProgramme(inlet: inlet)
        await beginPauseJob(of: stream)
    }

    /// What the host chose, or the last preview.
    private func pauseFile(of stream: StreamID) async -> (bytes: [UInt8], isLastFrame: Bool)? {
        if let chosen = pausePictures[stream] { return (chosen, false) }
        return await previews?[stream].map { ($0.jpeg, true) }
    }

    private func beginPauseJob(of stream: StreamID) async {
        guard let file = await pauseFile(of: stream), let transcoder, pauses[stream]?.job == nil,
            let inlet = pauses[stream]?.inlet
        else { return }
        let request = PausePictureRequest(
            source: SourceKey(stillOf: stream), file: file.bytes, isBlurred: file.isLastFrame,
            seed: random.next())
        let outlet = PauseOutlet(inlet) { [pauseEvents] event in
            pauseEvents.continuation.yield((stream, event))
        }
        pauses[stream]?.job = transcoder.begin(
            .pausePicture, request.bytes, decoding: request.source
        ) { outlet.take($0) }
        log.info("pause.begun", ["stream": stream, "chosen": !file.isLastFrame])
    }

    private func endPause(of stream: StreamID) {
        guard let pause = pauses.removeValue(forKey: stream) else { return }
        giveProgramme(of: stream)
        if let job = pause.job { transcoder?.end(job) }
        closeInjection(pause.inlet.id)
        log.info("pause.ended", ["stream": stream])
    }

    private func takePause(_ event: InjectionEvent, of stream: StreamID) {
        switch event {
        case .opened(let tracks):
            pauses[stream]?.track = tracks.first
            giveProgramme(of: stream)
        case .keyFrameWanted:
            if let job = pauses[stream]?.job { transcoder?.command(job, []) }
        }
    }

    func take(_ event: PauseEvent, of stream: StreamID) {
        switch event {
        case .playable: pauses[stream]?.isPlayable = true
        case .lost:
            pauses[stream]?.job = nil
            pauses[stream]?.isPlayable = false
        }
        giveProgramme(of: stream)
    }

    // MARK: What viewers get

    /// Gives viewers what the stage chose, with the pause picture in the place of its video.
    func giveProgramme(of stream: StreamID) {
        let tracks = programmeTracks(of: stream)
        for worker in workers { _ = worker.post(.setProgramme(stream, tracks)) }
    }

    func programmeTracks(of stream: StreamID) -> [PublishedTrack] {
        let room = rooms[stream]
        let chosen = room?.programmeTracks ?? []
        // A composition that has just begun.
        if let room, room.programmeTrack(.video) != nil, room.programmeSession(.video) == nil {
            return chosen
        }
        guard let pause = pauses[stream], pause.isPlayable, let track = pause.track else { return chosen }
        return chosen.filter { $0.plan.kind != .video } + [track]
    }

    // MARK: The host's choice

    /// Bytes of pictures that hosts chose, at most, over all streams.
    private static let pausePictureMemory = 32 << 20

    /// Notes the picture that a host chose; nil for none.
    /// - Returns: false if there is no room for it, or nothing is decoded here.
    package func setPausePicture(_ file: [UInt8]?, of stream: StreamID) async -> Bool {
        let others = pausePictures.reduce(0) { $0 + ($1.key == stream ? 0 : $1.value.count) }
        guard transcoder != nil, others + (file?.count ?? 0) <= Self.pausePictureMemory else { return false }
        let before = pausePictures[stream]
        pausePictures[stream] = file
        if let pauseShelf, await !pauseShelf.set(file, of: stream) {
            if pausePictures[stream] == file { pausePictures[stream] = before }
            return false
        }
        if let job = pauses[stream]?.job {
            transcoder?.end(job)
            pauses[stream]?.job = nil
        }
        return true
    }
}

/// Stands between the transcoder's thread and a worker.
private final class PauseOutlet: Sendable {
    private let inlet: InjectionInlet
    private let tell: @Sendable (PauseEvent) -> Void
    private let hasBegun = Atomic(false)

    init(_ inlet: InjectionInlet, tell: @escaping @Sendable (PauseEvent) -> Void) {
        self.inlet = inlet
        self.tell = tell
    }

    func take(_ event: TranscoderSupervisor.JobEvent) {
        switch event {
        case .packet(let packet):
            var packets = InjectedPackets()
            packets.append(packet.bytes.span, source: 0, captured: packet.captured)
            inlet.send(packets)
            if !hasBegun.exchange(true, ordering: .relaxed) { tell(.playable) }
        case .lost, .ended: tell(.lost)
        case .report, .keyFrameWanted: break
        }
    }
}

extension SourceKey {
    /// A stream's pause picture, whichever file that is: another file of the same host is no other source.
    fileprivate init(stillOf stream: StreamID) {
        var hasher = Hasher()
        hasher.combine("still")
        hasher.combine(stream)
        self.init(number: UInt64(bitPattern: Int64(hasher.finalize())))
    }
}
