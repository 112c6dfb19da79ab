import Base
import Forwarding
import Peer
import Stage
import Transcoder
import Wire

/// Pause pictures: which streams need one, and the pictures that hosts chose.
extension Node {
    /// Bytes of a pause picture, at most.
    package static let pausePictureLimit = 160 << 10

    /// Loads the pictures that hosts chose before a restart.
    func beginPausePictures() async {
        let kept = await desks.pauseShelf?.load(limit: Self.pausePictureLimit, total: PauseDesk.memory)
        for (stream, file) in kept ?? [:] {
            live.setPauseFile(file, of: stream)
            // `followPause` forgets the picture if the stream has ended since.
            programmeChanged(in: stream)
        }
    }

    /// Updates whether a stream's viewers see a pause picture.
    func followPause(of stream: StreamID) async {
        guard transcoder != nil, !isStopping else { return }
        if directory[stream]?.state == .ended {
            await perform(live.produce(at: now().elapsed) { $0.forgetPauseFile(of: stream) })
        }
        let isWanted = await isPictureOff(in: stream)
        // Without a picture of the host's choice, viewers see the last preview.
        let lastFrame = isWanted ? await previews?[stream]?.jpeg : nil
        let time = now().elapsed
        await perform(
            live.produce(at: time) {
                $0.updatePause(of: stream, isWanted: isWanted, lastFrame: lastFrame, at: time)
            })
    }

    /// Whether the programme is one participant's own video, and that video is off or lost.
    private func isPictureOff(in stream: StreamID) async -> Bool {
        guard let picture = live.ownPicture(of: stream) else { return false }
        return await registry[stream]?.isPictureOff(of: picture.participant) == true || picture.isLost
    }

    /// Programmes that show a pause picture now.
    package var pausedCount: Int { live.productions.pausedCount }

    // MARK: The host's choice

    /// Sets or removes (nil) the picture that a host chose.
    /// - Returns: false if there is no room for it, no transcoder to decode it, or it cannot be written to disk.
    package func setPausePicture(_ file: [UInt8]?, of stream: StreamID) async -> Bool {
        guard transcoder != nil else { return file == nil }
        guard live.productions.hasRoom(forPauseFile: file, of: stream) else {
            return false
        }
        // In memory first, so that two calls cannot both take the last room; taken back if the disk fails.
        let shown = live.productions.pauseFile(of: stream)
        live.setPauseFile(file, of: stream)
        var isStored = true
        if let shelf = desks.pauseShelf {
            let number = live.pauseChoices.begin(of: stream, insteadOf: shown)
            isStored = await shelf.set(file, of: stream)
            let correction = live.pauseChoices.end(number, file, of: stream, isStored: isStored)
            if let correction { live.setPauseFile(correction.file, of: stream) }
        }
        let time = now().elapsed
        await perform(live.produce(at: time) { $0.renewPause(of: stream, at: time) })
        programmeChanged(in: stream)
        return isStored
    }
}
