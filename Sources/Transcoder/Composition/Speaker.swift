import Base
import Codecs
import Wire

/// A person on stage in a composition: their inputs, and the content of their tile.
final class Speaker {
    private(set) var person: CompositionSpeaker
    /// When they came on stage.
    private let joined: MonotonicTime
    var audio: AudioInput?
    private(set) var video: VideoInput?
    var delay = PlayoutDelay()
    /// The picture to show; nil for a card.
    private var picture: Picture?
    /// Whether the tile differs from what was last drawn.
    var isChanged = true

    init(_ person: CompositionSpeaker, joined: MonotonicTime) {
        self.person = person
        self.joined = joined
    }

    /// Applies a new description; inputs whose number changed are replaced.
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
        // Pictures of a camera that was switched off must not reappear when it is switched on.
        if !new.hasPicture || new.video == nil {
            isChanged = isChanged || picture != nil
            picture = nil
            video?.forgetPictures()
        } else if !person.hasPicture, new.video == person.video {
            // Nor do those that came while it was off. A picture that does not change is sent once only: the new key
            // frame shows it again, should it have come before this.
            video?.forgetPictures()
            video?.requestKeyFrame()
        }
        if (new.name, new.isSpeaking, new.hasPicture) != (person.name, person.isSpeaking, person.hasPicture) {
            isChanged = true
        }
        person = new
    }

    /// Passes a packet to the input of its number.
    /// - Throws: for an Opus packet that cannot be parsed.
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

    /// Takes the picture that is to be shown now.
    /// - Returns: when its last packet arrived; nil if the picture has not changed.
    func takePicture(at tick: MonotonicTime) -> MonotonicTime? {
        guard person.hasPicture, let new = video?.takePicture(capturedBy: tick - delay.current) else {
            return nil
        }
        picture = new.picture
        isChanged = true
        return new.arrival
    }

    /// Whether the tile can be shown: there is a picture, or a card is due.
    func isPresentable(at now: MonotonicTime) -> Bool {
        picture != nil || person.video == nil || !person.hasPicture || now >= joined + Composition.patience
    }

    var content: Canvas.Content {
        Canvas.Content(
            name: person.name, picture: picture, isSpeaking: person.isSpeaking, isScreen: person.isScreen)
    }
}
