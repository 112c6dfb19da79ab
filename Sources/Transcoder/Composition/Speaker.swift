import Base
import Codecs
import Wire

/// Somebody on stage as a composition knows them: what comes in of them, and what is shown.
final class Speaker {
    private(set) var person: CompositionSpeaker
    private let joined: MonotonicTime
    var audio: AudioInput?
    private(set) var video: VideoInput?
    var delay = PlayoutDelay()
    private var picture: Picture?
    /// Whether it looks different from what was drawn last.
    var isChanged = true

    init(_ person: CompositionSpeaker, joined: MonotonicTime) {
        self.person = person
        self.joined = joined
    }

    func update(_ new: CompositionSpeaker, codecs: Composition.Codecs) {
        let isFirst = audio == nil && video == nil
        if isFirst || new.video != person.video {
            video = new.video.map { input in
                VideoInput { codecs.makePictureDecoder($0, input) }
            }
            isChanged = true
        }
        if isFirst || new.audio != person.audio {
            audio = new.audio.flatMap { codecs.makeSoundDecoder($0) }.map { AudioInput(decoder: $0) }
        }
        if !new.hasPicture || new.video == nil {
            isChanged = isChanged || picture != nil
            picture = nil
            video?.forgetPictures()
        }
        if (new.name, new.isSpeaking, new.hasPicture) != (person.name, person.isSpeaking, person.hasPicture) {
            isChanged = true
        }
        person = new
    }

    func receive(_ packet: InputPacket, of input: UInt64, at now: MonotonicTime) throws(WireError) {
        if person.video == input {
            for lateness in video?.receive(packet, at: now) ?? [] { delay.noteVideo(lateness) }
        } else if person.audio == input, packet.codec == .opus, !packet.payload.isEmpty {
            let frames = try OpusPayload.duration(packet.payload.span)
            let lateness = audio?.receive(
                packet.payload, timestamp: packet.timestamp, frames: frames, captured: packet.captured,
                epoch: packet.epoch, at: now)
            if let lateness { delay.noteAudio(lateness) }
        }
    }

    /// Takes the picture of this moment.
    /// - Returns: when its last packet came; nil if it is the same as before.
    func takePicture(at tick: MonotonicTime) -> MonotonicTime? {
        guard person.hasPicture, let new = video?.takePicture(capturedBy: tick - delay.current) else {
            return nil
        }
        picture = new.picture
        isChanged = true
        return new.arrival
    }

    /// Whether there is a picture, or it is time for a card.
    func isPresentable(at now: MonotonicTime) -> Bool {
        picture != nil || person.video == nil || !person.hasPicture || now >= joined + Composition.patience
    }

    var content: Canvas.Content {
        Canvas.Content(
            name: person.name, picture: picture, isSpeaking: person.isSpeaking, isScreen: person.isScreen)
    }
}
