import Base
import Codecs
import Foundation
import Wire

@testable import Transcoder

/// A speaker who does not exist: a colour as VP8 and a tone as Opus, packet by packet, at any time.
struct SyntheticSpeaker {
    let video: UInt64
    let audio: UInt64
    let name: String
    var color: DrawingColor
    var frequency: Double
    private let encoder: VP8Encoder
    private let voice: OpusEncoder
    private var videoPackets: PacketMaker
    private var audioTime: UInt32 = 1_000
    private var videoTime: Int64 = 90_000
    private var sequence: (video: Int64, audio: Int64) = (500, 60_000)
    private var samples = 0
    var epoch: UInt32 = 0
    private var needsKeyFrame = true

    init(
        _ number: Int, color: UInt32, frequency: Double, width: Int = 320, height: Int = 180
    ) throws {
        name = "Speaker \(number)"
        video = UInt64(number * 2)
        audio = UInt64(number * 2 + 1)
        self.color = DrawingColor(rgb: color)
        self.frequency = frequency
        encoder = try VP8Encoder(
            .init(width: width, height: height, framesPerSecond: 30, bitrate: 400_000))
        voice = try OpusEncoder(bitrate: 64_000)
        videoPackets = PacketMaker(seed: UInt64(number), kind: .video)
    }

    var person: CompositionSpeaker {
        var person = CompositionSpeaker(id: name, name: name)
        person.video = video
        person.audio = audio
        return person
    }

    mutating func requestKeyFrame() { needsKeyFrame = true }

    /// The packets of the next picture.
    mutating func frame(at now: MonotonicTime) throws -> [InputPacket] {
        var picture = try Picture(width: encoder.settings.width, height: encoder.settings.height)
        picture.fill(x: 0, y: 0, width: picture.width, height: picture.height, with: color)
        return try frame(picture, at: now)
    }

    mutating func frame(_ picture: Picture, at now: MonotonicTime) throws -> [InputPacket] {
        videoTime += 3_000
        guard
            let frame = try encoder.encode(picture, timestamp: videoTime, isKeyFrame: needsKeyFrame)
        else { return [] }
        needsKeyFrame = false
        var packets: [InputPacket] = []
        let payloads = videoPackets.vp8(frame.bytes, timestamp: 0).map { Array($0[12...]) }
        for (index, payload) in payloads.enumerated() {
            packets.append(
                InputPacket(
                    sequenceNumber: sequence.video, timestamp: UInt32(truncatingIfNeeded: videoTime),
                    marker: index == payloads.count - 1, codec: .vp8,
                    isEntryPoint: index == 0 && frame.isKeyFrame, epoch: epoch, arrival: now, captured: now,
                    payload: payload))
            sequence.video += 1
        }
        return packets
    }

    /// The next 20 ms.
    mutating func sound(at now: MonotonicTime, amplitude: Double = 0.25) throws -> InputPacket {
        let block = (0..<960).flatMap { index -> [Float] in
            let value = Float(amplitude * sin(2 * .pi * frequency * Double(samples + index) / 48_000))
            return [value, value]
        }
        samples += 960
        defer {
            audioTime &+= 960
            sequence.audio += 1
        }
        return InputPacket(
            sequenceNumber: sequence.audio, timestamp: audioTime, marker: false, codec: .opus,
            isEntryPoint: true, epoch: epoch, arrival: now, captured: now,
            payload: try voice.encode(block))
    }
}

/// A composition with speakers, and a viewer who decodes what comes of it, in virtual time.
struct CompositionRig {
    private(set) var now = MonotonicTime(nanoseconds: 5_000_000_000)
    let composition: Composition
    var speakers: [SyntheticSpeaker]
    /// Speakers who send no pictures, or no sound.
    var withoutVideo: Set<String> = []
    var withoutAudio: Set<String> = []
    /// Leaves out packets of sound.
    var dropsSound: (Int) -> Bool = { _ in false }
    /// How long packets take, by their number.
    var delay: (Int) -> Duration = { _ in .zero }
    private var nextFrame: MonotonicTime
    private var nextSound: MonotonicTime
    private var count = 0
    private var onTheWay: [(at: MonotonicTime, packet: InputPacket, input: UInt64)] = []
    private var assembler = FrameAssembler()
    private let decoder: VideoDecoder
    private let ear: OpusDecoder
    private(set) var picture: Picture?
    /// When pictures were shown, and what they were stamped with.
    private(set) var shown: [(at: MonotonicTime, timestamp: UInt32, isKeyFrame: Bool)] = []
    private(set) var sound: [Float] = []
    private(set) var smallFrames = 0
    private var sequence: Int64 = 0

    static func settings(width: Int = 640, height: Int = 360) -> CompositionSettings {
        var settings = CompositionSettings()
        settings.width = width
        settings.height = height
        settings.bitrate = 1_000_000
        return settings
    }

    init(_ speakers: [SyntheticSpeaker], _ settings: CompositionSettings = settings()) throws {
        self.speakers = speakers
        composition = Composition(
            CompositionScene(settings: settings, speakers: speakers.map(\.person)), seed: 77, at: now)
        nextFrame = now
        nextSound = now
        decoder = try VideoDecoder(.vp8)
        ear = try OpusDecoder()
    }

    func update(_ change: (inout [CompositionSpeaker]) -> Void) {
        var people = speakers.map(\.person)
        change(&people)
        composition.update(CompositionScene(settings: Self.settings(), speakers: people), at: now)
    }

    mutating func run(for duration: Duration) throws {
        let end = now + duration
        while now < end {
            let due = onTheWay.map(\.at).min() ?? .distantFuture
            now = min(end, composition.deadline, nextFrame, nextSound, due)
            if now >= nextSound { try sendSound() }
            if now >= nextFrame { try sendFrames() }
            deliver()
            if now >= composition.deadline {
                for packet in composition.advance(to: now) { try take(packet) }
                composition.note(cost: .milliseconds(2), at: now)
            }
            for wish in composition.takeKeyFrameWishes() {
                for index in speakers.indices where speakers[index].video == wish {
                    speakers[index].requestKeyFrame()
                }
            }
        }
    }

    private mutating func sendSound() throws {
        nextSound = nextSound + .milliseconds(20)
        for index in speakers.indices {
            let packet = try speakers[index].sound(at: now)
            count += 1
            guard !withoutAudio.contains(speakers[index].name), !dropsSound(count) else { continue }
            onTheWay.append((now + delay(count), packet, speakers[index].audio))
        }
    }

    private mutating func sendFrames() throws {
        nextFrame = nextFrame + .nanoseconds(33_333_333)
        for index in speakers.indices where !withoutVideo.contains(speakers[index].name) {
            for packet in try speakers[index].frame(at: now) {
                onTheWay.append((now, packet, speakers[index].video))
            }
        }
    }

    private mutating func deliver() {
        for item in onTheWay where item.at <= now {
            composition.receive(item.packet, of: item.input, at: now)
        }
        onTheWay.removeAll { $0.at <= now }
    }

    /// Decodes what a viewer would get.
    private mutating func take(_ packet: ComposedPacket) throws {
        let header = try RTPHeader(parsing: packet.bytes.span)
        let payload = try packet.bytes.span.bytes(header.payloadRange)
        switch packet.kind {
        case .audio: sound += try ear.decode(payload)
        case .smallVideo: smallFrames += header.marker ? 1 : 0
        case .video:
            sequence += 1
            let starts = try VideoPayload.describe(.vp8, payload: payload.span, marker: header.marker)
            let input = InputPacket(
                sequenceNumber: sequence, timestamp: header.timestamp, marker: header.marker, codec: .vp8,
                isEntryPoint: starts.startsKeyFrame, arrival: now, payload: payload)
            for frame in assembler.insert(input, at: now) {
                picture = try decoder.decode(frame.bytes) ?? picture
                shown.append((now, frame.timestamp, frame.isKeyFrame))
            }
        }
    }

    /// Whether the viewer sees this colour at a place.
    func sees(_ color: DrawingColor, x: Int, y: Int) -> Bool {
        guard let sample = picture?.sample(x: x, y: y) else { return false }
        return abs(Int(sample.luma) - Int(color.luma)) < 20 && abs(Int(sample.u) - Int(color.u)) < 20
            && abs(Int(sample.v) - Int(color.v)) < 20
    }

    /// How loud a tone is in the last second of the mix.
    func strength(_ frequency: Double) -> Double {
        let samples = Array(sound.suffix(48_000 * 2))
        var (real, imaginary) = (0.0, 0.0)
        let count = samples.count / 2
        for index in 0..<count {
            let angle = 2 * .pi * frequency * Double(index) / 48_000
            real += Double(samples[index * 2]) * cos(angle)
            imaginary += Double(samples[index * 2]) * sin(angle)
        }
        return 2 * (real * real + imaginary * imaginary).squareRoot() / Double(max(count, 1))
    }

    /// The longest time between two pictures, from `start` on.
    func longestGap(since start: MonotonicTime) -> Duration {
        let times = shown.map(\.at).filter { $0 >= start } + [now]
        return zip(times, times.dropFirst()).map { $1 - $0 }.max() ?? .seconds(99)
    }
}
