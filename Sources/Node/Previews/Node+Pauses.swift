import Base
import Forwarding
import Peer
import Stage
import Transcoder
import Wire

/// Pause pictures: what the desk is told of streams, and what is done of what it wants.
extension Node {
    /// Bytes of a picture that a host may choose.
    package static let pausePictureLimit = 160 << 10

    /// Takes in what hosts chose before the server was started again.
    func beginPausePictures() async {
        let kept = await desks.pauseShelf?.load(limit: Self.pausePictureLimit, total: PauseDesk.memory)
        for (stream, file) in kept ?? [:] {
            pauses.setFile(file, of: stream)
            // It may have ended meanwhile.
            programmeChanged(in: stream)
        }
    }

    /// Looks whether a stream's viewers are to see a pause picture.
    func followPause(of stream: StreamID) async {
        guard transcoder != nil, !isStopping else { return }
        if directory[stream]?.state == .ended { carryOut(pauses.forgetFile(of: stream)) }
        let isWanted = await isPictureOff(in: stream)
        let lastFrame = isWanted ? await previews?[stream]?.jpeg : nil
        carryOut(pauses.update(stream, isWanted: isWanted, lastFrame: lastFrame, at: now().elapsed))
    }

    /// Whether the programme is somebody's own picture, and that is off.
    private func isPictureOff(in stream: StreamID) async -> Bool {
        guard let picture = streams[stream]?.ownPicture(among: sessions) else { return false }
        return await registry[stream]?.isPictureOff(of: picture.participant) == true || picture.isLost
    }

    /// Programmes whose picture is a pause picture now.
    package var pausedCount: Int { pauses.playableCount }

    func take(_ event: PauseEvent, of stream: StreamID) {
        carryOut(pauses.receive(event, of: stream, at: now().elapsed))
    }

    // MARK: What the desk wants

    private func carryOut(_ effects: [PauseDesk.Effect]) {
        for effect in effects { carryOut(effect) }
    }

    private func carryOut(_ effect: PauseDesk.Effect) {
        switch effect {
        case .open(let stream):
            let injection = openInjection([PauseDesk.plan]) { node, event in
                switch event {
                case .opened(let tracks): node.carryOut(node.pauses.made(tracks.first, of: stream))
                case .keyFrameWanted: node.carryOut(node.pauses.keyFrameWanted(of: stream))
                }
            }
            carryOut(pauses.opened(injection, of: stream, at: now().elapsed))
        case .close(let injection): closeInjection(injection)
        case .begin(let stream, let run, let injection, let picture):
            begin(run, of: stream, into: injection, picture)
        case .end(let job): transcoder?.end(job)
        case .makeKeyFrame(let job): transcoder?.command(job, [])
        case .give(let stream): giveProgramme(of: stream)
        case .forgetFile(let stream): desks.pauseShelf?.remove(stream)
        case .reportEnd(let stream): log.info("pause.ended", ["stream": stream])
        }
    }

    private func begin(
        _ run: PauseDesk.Run, of stream: StreamID, into injection: InjectionID, _ picture: PauseDesk.Picture
    ) {
        guard let transcoder, let inlet = inlet(of: injection) else { return }
        let request = PausePictureRequest(
            source: SourceKey(.pausePicture(stream)), file: picture.file, isBlurred: picture.isLastFrame,
            seed: random.next())
        let outlet = PauseOutlet(inlet, of: run) { [inbox = inboxes.pauses] event in
            inbox.put(PauseNews(stream: stream, event: event))
        }
        let job = transcoder.begin(.pausePicture, request.bytes, decoding: request.source) { outlet.take($0) }
        log.info("pause.begun", ["stream": stream, "chosen": !picture.isLastFrame])
        guard let job else { return }
        carryOut(pauses.began(job, run, of: stream))
    }

    // MARK: The host's choice

    /// Notes the picture that a host chose; nil for none.
    /// - Returns: false if there is no room for it, or nothing is decoded here.
    package func setPausePicture(_ file: [UInt8]?, of stream: StreamID) async -> Bool {
        guard transcoder != nil, pauses.hasRoom(for: file, of: stream) else { return false }
        let before = pauses.file(of: stream)
        pauses.setFile(file, of: stream)
        if let shelf = desks.pauseShelf, await !shelf.set(file, of: stream) {
            if pauses.file(of: stream) == file { pauses.setFile(before, of: stream) }
            return false
        }
        carryOut(pauses.renew(stream, at: now().elapsed))
        programmeChanged(in: stream)
        return true
    }
}
