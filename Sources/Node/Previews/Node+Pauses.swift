import Base
import Forwarding
import Peer
import Stage
import Transcoder
import Wire

/// Pause pictures: whether there is to be one, and what hosts chose for that.
extension Node {
    /// Bytes of a picture that a host may choose.
    package static let pausePictureLimit = 160 << 10

    /// Takes in what hosts chose before the server was started again.
    func beginPausePictures() async {
        let kept = await desks.pauseShelf?.load(limit: Self.pausePictureLimit, total: PauseDesk.memory)
        for (stream, file) in kept ?? [:] {
            live.setPauseFile(file, of: stream)
            // It may have ended meanwhile.
            programmeChanged(in: stream)
        }
    }

    /// Looks whether a stream's viewers are to see a pause picture.
    func followPause(of stream: StreamID) async {
        guard transcoder != nil, !isStopping else { return }
        if directory[stream]?.state == .ended {
            await perform(live.produce(at: now().elapsed) { $0.forgetPauseFile(of: stream) })
        }
        let isWanted = await isPictureOff(in: stream)
        let lastFrame = isWanted ? await previews?[stream]?.jpeg : nil
        let time = now().elapsed
        await perform(
            live.produce(at: time) {
                $0.updatePause(of: stream, isWanted: isWanted, lastFrame: lastFrame, at: time)
            })
    }

    /// Whether the programme is somebody's own picture, and that is off.
    private func isPictureOff(in stream: StreamID) async -> Bool {
        guard let picture = live.ownPicture(of: stream) else { return false }
        return await registry[stream]?.isPictureOff(of: picture.participant) == true || picture.isLost
    }

    /// Programmes whose picture is a pause picture now.
    package var pausedCount: Int { live.productions.pausedCount }

    // MARK: The host's choice

    /// Notes the picture that a host chose; nil for none.
    /// - Returns: false if there is no room for it, nothing is decoded here, or nothing can be written.
    package func setPausePicture(_ file: [UInt8]?, of stream: StreamID) async -> Bool {
        guard transcoder != nil else { return file == nil }
        guard live.productions.hasRoom(forPauseFile: file, of: stream) else {
            return false
        }
        let before = live.productions.pauseFile(of: stream)
        live.setPauseFile(file, of: stream)
        if let shelf = desks.pauseShelf, await !shelf.set(file, of: stream) {
            if live.productions.pauseFile(of: stream) == file { live.setPauseFile(before, of: stream) }
            return false
        }
        let time = now().elapsed
        await perform(live.produce(at: time) { $0.renewPause(of: stream, at: time) })
        programmeChanged(in: stream)
        return true
    }
}
