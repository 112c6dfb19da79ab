import Base
import Codecs
import Testing
import Wire

@testable import Transcoder

/// Makes a picture of every frame.
private final class AnyPicture: PictureDecoder {
    func decode(_ frame: [UInt8]) throws(CodecError) -> Picture? { try Picture(width: 32, height: 16) }
}

/// Makes silence of everything.
private final class AnySound: SoundDecoder {
    func decode(_ packet: [UInt8]) throws(CodecError) -> [Float] { [Float](repeating: 0, count: 1_920) }

    func recover(from packet: [UInt8], frames: Int) throws(CodecError) -> [Float] {
        [Float](repeating: 0, count: frames * 2)
    }

    func conceal(frames: Int) throws(CodecError) -> [Float] { [Float](repeating: 0, count: frames * 2) }
}

/// The inputs for which decoders were asked for.
private final class AskedInputs {
    var pictures: [UInt64] = []
    var sounds: [UInt64] = []
}

@Suite struct `A speaker of a composition` {
    private static let joined = MonotonicTime(nanoseconds: 5_000_000_000)
    private let asked = AskedInputs()
    private let speaker: Speaker
    private var person: CompositionSpeaker
    private var sequence: Int64 = 0

    init() {
        var person = CompositionSpeaker(id: "1", name: "Ann")
        (person.video, person.audio) = (2, 3)
        self.person = person
        speaker = Speaker(person, joined: Self.joined)
    }

    private func update() {
        let asked = asked
        let codecs = Composition.Codecs(
            makePictureDecoder: { _, input in
                asked.pictures.append(input)
                return AnyPicture()
            },
            makeSoundDecoder: { input in
                asked.sounds.append(input)
                return AnySound()
            })
        speaker.update(person, codecs: codecs)
    }

    /// Brings a picture by an input, and shows it if there is one.
    private mutating func show(by input: UInt64, isKeyFrame: Bool) throws -> Bool {
        sequence += 1
        let time = Self.joined + .milliseconds(Int(sequence) * 33)
        let packet = InputPacket(
            sequenceNumber: sequence, timestamp: UInt32(sequence) * 2_970, marker: true, codec: .vp8,
            isEntryPoint: isKeyFrame, arrival: time, captured: time, payload: [0x10, 1])
        try speaker.receive(packet, of: input, at: time)
        return speaker.takePicture(at: time + .seconds(1)) != nil
    }

    @Test mutating func `is waited for until the picture comes, for a while`() throws {
        update()
        let due = Self.joined + Composition.patience
        let early = due.advanced(byNanoseconds: -1)
        #expect(!speaker.isPresentable(at: early) && speaker.isPresentable(at: due))
        let isShown = try show(by: 2, isKeyFrame: true)
        #expect(isShown && speaker.isPresentable(at: early))
    }

    @Test mutating func `is not waited for without a picture to come`() {
        person.hasPicture = false
        update()
        #expect(speaker.isPresentable(at: Self.joined))
        person.hasPicture = true
        update()
        #expect(!speaker.isPresentable(at: Self.joined))
        person.video = nil
        update()
        #expect(speaker.isPresentable(at: Self.joined))
    }

    /// Nobody who switches a camera off wants to be seen as they were.
    @Test mutating func `is not seen any more once the camera is off, but in new pictures`() throws {
        update()
        let before = try show(by: 2, isKeyFrame: true)
        speaker.isChanged = false
        person.hasPicture = false
        update()
        #expect(before && speaker.content.picture == nil && speaker.isChanged)
        speaker.isChanged = false
        person.hasPicture = true
        update()
        let old = speaker.takePicture(at: Self.joined + .seconds(9))
        #expect(speaker.content.picture == nil && speaker.isChanged && old == nil)
        let after = try show(by: 2, isKeyFrame: false)
        #expect(after && speaker.content.picture != nil)
    }

    /// Nor as they were while it was off, as by a host who muted them.
    @Test mutating func `is not seen as while the camera was off once it is on, and is asked for a picture`()
        throws
    {
        update()
        _ = try show(by: 2, isKeyFrame: true)
        person.hasPicture = false
        update()
        let hidden = try show(by: 2, isKeyFrame: false)
        let wishBefore = speaker.video?.takeKeyFrameWish()
        person.hasPicture = true
        update()
        let old = speaker.takePicture(at: Self.joined + .seconds(9))
        let wish = speaker.video?.takeKeyFrameWish()
        #expect(!hidden && old == nil)
        #expect(wishBefore == false && wish == true)
        // What comes from then on is shown, whatever else changes.
        person.isSpeaking = true
        update()
        let after = try show(by: 2, isKeyFrame: false)
        let wishAfter = speaker.video?.takeKeyFrameWish()
        #expect(after && wishAfter == false)
    }

    /// A shared screen may send a single picture for minutes.
    @Test mutating func `is seen in the first picture of an input, whatever changes then`() throws {
        person.video = nil
        person.hasPicture = false
        update()
        person.video = 2
        person.hasPicture = true
        update()
        let time = Self.joined + .milliseconds(33)
        let packet = InputPacket(
            sequenceNumber: 1, timestamp: 2_970, marker: true, codec: .vp8, isEntryPoint: true,
            arrival: time, captured: time, payload: [0x10, 1])
        try speaker.receive(packet, of: 2, at: time)
        person.name = "Anna"
        update()
        #expect(speaker.takePicture(at: time + .seconds(1)) != nil)
    }

    @Test mutating func `is drawn anew where something of the tile changes, and not otherwise`() {
        update()
        speaker.isChanged = false
        update()
        person.arrival = 7
        update()
        #expect(!speaker.isChanged)
        var changes: [Bool] = []
        person.name = "Anna"
        update()
        changes.append(speaker.isChanged)
        speaker.isChanged = false
        person.isSpeaking = true
        update()
        changes.append(speaker.isChanged)
        #expect(changes == [true, true])
        #expect(speaker.content.name == "Anna" && speaker.content.isSpeaking)
    }

    @Test mutating func `has new decoders for new inputs alone`() throws {
        update()
        update()
        _ = try show(by: 2, isKeyFrame: true)
        #expect(asked.pictures == [2] && asked.sounds == [3])
        person.video = 8
        update()
        // The earlier input brings nothing any more.
        let old = try show(by: 2, isKeyFrame: true)
        let new = try show(by: 8, isKeyFrame: true)
        #expect(!old && new)
        #expect(asked.pictures == [2, 8] && asked.sounds == [3])
        person.audio = nil
        update()
        let hasSound = speaker.audio != nil
        person.audio = 9
        update()
        #expect(!hasSound && speaker.audio != nil && asked.sounds == [3, 9])
    }

    @Test mutating func `has sound of Opus alone, and refuses what is not whole`() throws {
        update()
        func packet(_ codec: InputCodec, _ payload: [UInt8]) -> InputPacket {
            InputPacket(
                sequenceNumber: 1, timestamp: 960, marker: false, codec: codec, isEntryPoint: true,
                arrival: Self.joined, captured: Self.joined, payload: payload)
        }
        try speaker.receive(packet(.aac, [0xFC, 1]), of: 3, at: Self.joined)
        try speaker.receive(packet(.opus, []), of: 3, at: Self.joined)
        try speaker.receive(packet(.opus, [0xFC, 1]), of: 4, at: Self.joined)
        #expect(speaker.audio?.statistics.packets == 0)
        // Of as many frames as its second byte tells, and there is none.
        let (receiver, broken) = (speaker, packet(.opus, [0xFF]))
        #expect(throws: WireError.self) { try receiver.receive(broken, of: 3, at: Self.joined) }
        try speaker.receive(packet(.opus, [0xFC, 1]), of: 3, at: Self.joined)
        #expect(speaker.audio?.statistics.packets == 1)
    }
}
