import Base
import Foundation
import TestSupport
import Testing
import Wire

@testable import Recordings
@testable import Transcoder

/// A machine, what it wrote, and a publisher who sends 30 pictures and 50 packets of sound a second.
struct Studio {
    var machine: RecordingMachine
    var file: [UInt8] = []
    var reports: [RecordingReport] = []
    var wanted = 0
    var isOver = false
    /// How long the file was, and how long it played, whenever it was complete so far.
    var flushes: [(size: Int, milliseconds: Int64)] = []
    var now = MonotonicTime(nanoseconds: 1_000_000_000)
    var video = InputID(number: 1)
    var audio = InputID(number: 2)
    /// Where time stamps begin.
    var shift: UInt32 = 0
    /// How old pictures are when they come, as their sender's reports have it.
    var pictureAge = Duration.milliseconds(40)
    var codec = InputCodec.vp8
    var frames = 0
    var packets = 0

    init(hasAudio: Bool = true) {
        machine = RecordingMachine(RecordingRequest(expectsVideo: true, expectsAudio: hasAudio))
        machine.open(video)
        machine.open(audio)
    }

    mutating func settle() {
        for action in machine.takeActions() {
            switch action {
            case .end: isOver = true
            case .wantKeyFrame: wanted += 1
            case .report(.bytes(let offset, let bytes)):
                let start = Int(offset)
                #expect(start <= file.count)
                file.replaceSubrange(start..<min(start + bytes.count, file.count), with: bytes)
            case .report(let report):
                reports.append(report)
                if case .flushed(let milliseconds) = report {
                    flushes.append((file.count, Int64(milliseconds)))
                }
            }
        }
    }

    /// A picture of which only the head is one.
    private func payload(isKeyFrame: Bool) -> [UInt8] {
        let rest = [UInt8](repeating: 0x55, count: 600)
        switch codec {
        case .h264:
            // A sequence parameter set of 320×240, a picture parameter set, a slice.
            let sets: [[UInt8]] = [
                [0x67, 0x42, 0xC0, 0x0D, 0xDA, 0x05, 0x07, 0xC4], [0x68, 0xCE, 0x3C, 0x80], [0x65] + rest,
            ]
            let units = isKeyFrame ? sets : [[0x41] + rest]
            return [24] + units.flatMap { [UInt8($0.count >> 8), UInt8($0.count & 0xFF)] + $0 }
        default:
            let head: [UInt8] =
                isKeyFrame ? [0x10, 0, 0, 0x9D, 0x01, 0x2A, 0x40, 0x01, 0xF0, 0x00] : [0x11, 0, 0]
            return [0x10] + head + rest
        }
    }

    mutating func sendPicture(isLost: Bool = false, isKeyFrame: Bool? = nil) {
        let isKeyFrame = isKeyFrame ?? (frames % 60 == 0)
        let number = Int64(frames)
        frames += 1
        if isLost { return }
        let packet = InputPacket(
            sequenceNumber: number, timestamp: UInt32(truncatingIfNeeded: number * 3_000) &+ shift,
            marker: true,
            codec: codec, isEntryPoint: isKeyFrame, arrival: now, captured: now - pictureAge,
            payload: payload(isKeyFrame: isKeyFrame))
        machine.take(packet, of: video, at: now)
        settle()
    }

    mutating func sendSound() {
        let packet = InputPacket(
            sequenceNumber: Int64(packets), timestamp: UInt32(truncatingIfNeeded: packets * 960) &+ shift,
            marker: false, codec: .opus, isEntryPoint: true, arrival: now,
            captured: now - .milliseconds(20), payload: [0xFC, 1, 2, 3])
        packets += 1
        machine.take(packet, of: audio, at: now)
        settle()
    }

    /// So many tenths of a second.
    mutating func play(_ tenths: Int, hasSound: Bool = true) {
        for _ in 0..<tenths {
            for slot in 0..<15 {
                if slot % 5 == 0 { sendPicture() }
                if slot % 3 == 0, hasSound { sendSound() }
                now = now + .nanoseconds(100_000_000 / 15)
            }
            machine.advance(to: now)
            settle()
        }
    }

    /// Everything comes from other sources now.
    mutating func change() {
        machine.close(video)
        machine.close(audio)
        (video, audio) = (InputID(number: video.number + 2), InputID(number: audio.number + 2))
        machine.open(video)
        machine.open(audio)
        shift = shift &+ 1_500_000_000
        (frames, packets) = (0, 0)
    }

    mutating func stop() {
        machine.finish(.stopped, at: now)
        settle()
    }

    var container: RecordingContainer? {
        for case .began(let container, _, _, _) in reports { return container }
        return nil
    }

    func outline(_ bytes: [UInt8]) -> RecordingOutline {
        let source = ByteSource(bytes)
        return container == .mp4 ? MP4Fragments(source).outline : WebMOutline.read(source)
    }
}

@Suite struct `A recording's file` {
    @Test(arguments: [InputCodec.vp8, .h264])
    func `lasts as long as what was sent`(codec: InputCodec) throws {
        var studio = Studio()
        studio.codec = codec
        studio.play(50)
        studio.stop()
        #expect(studio.isOver)
        #expect(studio.container == (codec == .h264 ? .mp4 : .webM))
        guard case .finished(let milliseconds, .stopped) = try #require(studio.reports.last) else {
            Issue.record("it did not end: \(studio.reports)")
            return
        }
        #expect((4_900...5_100).contains(milliseconds))
        let outline = studio.outline(studio.file)
        #expect(abs(outline.milliseconds - Int64(milliseconds)) <= 50)
        #expect(outline.end == studio.file.count)
    }

    @Test(arguments: [InputCodec.vp8, .h264])
    func `loses less than a second wherever it is cut off`(codec: InputCodec) throws {
        var studio = Studio()
        studio.codec = codec
        studio.play(60)
        // Nobody completes it.
        #expect(studio.flushes.count >= 8)
        var gaps = zip(studio.flushes, studio.flushes.dropFirst()).map { $1.milliseconds - $0.milliseconds }
        gaps.append(6_000 - (studio.flushes.last?.milliseconds ?? 0))
        #expect(try #require(gaps.max()) <= 1_000)
        for cut in stride(from: 1, through: studio.file.count, by: 97) {
            let outline = studio.outline(Array(studio.file[..<cut]))
            #expect(outline.end <= cut)
            let whole = studio.flushes.last { $0.size <= cut }
            #expect(outline.milliseconds >= (whole?.milliseconds ?? 0) - 50, "cut at \(cut)")
        }
    }

    @Test(arguments: [InputCodec.vp8, .h264])
    func `does no harm when its bytes are wrong`(codec: InputCodec) {
        var studio = Studio()
        studio.codec = codec
        studio.play(30)
        var random = SeededGenerator(seed: 7)
        for _ in 0..<500 {
            var bytes = studio.file
            for _ in 0..<Int.random(in: 1...20, using: &random) {
                // Mostly where the structure is.
                let limit = Bool.random(using: &random) ? 700 : bytes.count
                bytes[Int.random(in: 0..<limit, using: &random)] = UInt8.random(
                    in: .min ... .max, using: &random)
            }
            let outline = studio.outline(bytes)
            #expect((0...Int64(bytes.count)).contains(outline.end))
        }
    }

    @Test func `tells players its length once it was mended`() throws {
        var studio = Studio()
        studio.play(30)
        var bytes = studio.file
        let outline = studio.outline(bytes)
        let patch = try #require(outline.patch)
        let place = Int(patch.offset)
        #expect(bytes[place] == 0xEC && patch.bytes.count == 11)
        bytes.replaceSubrange(place..<(place + 11), with: patch.bytes)
        // Mended twice, it is the same.
        #expect(studio.outline(bytes) == outline)
    }

    @Test func `begins with a key frame`() {
        var studio = Studio()
        for _ in 0..<20 {
            studio.sendPicture(isKeyFrame: false)
            studio.now = studio.now + .milliseconds(33)
        }
        #expect(studio.reports.isEmpty)
        #expect(studio.wanted > 0)
        studio.frames = 60
        studio.play(20)
        studio.stop()
        guard case .finished(let milliseconds, _)? = studio.reports.last else {
            Issue.record("it did not end")
            return
        }
        #expect((1_900...2_100).contains(milliseconds))
    }

    @Test func `ends where another codec begins`() {
        var studio = Studio()
        studio.play(20)
        studio.codec = .h264
        studio.frames = 60
        studio.play(2)
        #expect(studio.isOver)
        guard case .finished(_, .changed)? = studio.reports.last else {
            Issue.record("it goes on: \(studio.reports)")
            return
        }
    }

    @Test func `goes on with the next key frame when packets are lost`() {
        var studio = Studio()
        studio.play(10)
        studio.sendPicture(isLost: true)
        let before = studio.wanted
        studio.play(10)
        #expect(studio.wanted > before)
        studio.play(30)
        studio.stop()
        guard case .finished(let milliseconds, .stopped)? = studio.reports.last else {
            Issue.record("it did not end")
            return
        }
        #expect((4_900...5_200).contains(milliseconds))
    }

    @Test func `goes on when picture and sound come from elsewhere`() throws {
        var studio = Studio()
        studio.play(20)
        studio.change()
        studio.play(20)
        studio.change()
        studio.play(20)
        studio.stop()
        guard case .finished(let milliseconds, .stopped)? = studio.reports.last else {
            Issue.record("it did not end: \(studio.reports)")
            return
        }
        #expect((5_800...6_200).contains(milliseconds))
        let lengths = studio.flushes.map(\.milliseconds)
        #expect(zip(lengths, lengths.dropFirst()).allSatisfy { $1 - $0 < 1_000 })
        // Three packets of sound in five of a picture's and its own.
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("\(UUID()).webm")
        try Data(studio.file).write(to: path)
        defer { try? FileManager.default.removeItem(at: path) }
        let sizes = try SampleVideo.ffmpeg(["-i", path.path, "-map", "0:a", "-c", "copy", "-f", "data", "-"])
            .count
        #expect((290 * 4...302 * 4).contains(sizes))
    }

    @Test func `is made no hours long by a sender's leaps`() throws {
        var studio = Studio()
        for _ in 0..<6 {
            studio.play(10)
            studio.shift = studio.shift &+ 1_300_000_000
        }
        studio.stop()
        #expect(studio.outline(studio.file).milliseconds < 30_000)
    }

    @Test func `does without sound that does not come`() {
        var studio = Studio()
        studio.play(50, hasSound: false)
        studio.stop()
        #expect(studio.container == .webM)
        #expect(studio.outline(studio.file).milliseconds > 4_500)
    }

    /// As from encoders that begin with the picture.
    @Test(arguments: [1, 8], [InputCodec.vp8, .h264])
    func `has sound that nobody told of and that comes a moment later`(tenths: Int, codec: InputCodec) {
        var studio = Studio(hasAudio: false)
        studio.codec = codec
        studio.play(tenths, hasSound: false)
        studio.play(30)
        #expect(!studio.isOver)
        guard case .began(_, _, _, hasAudio: true)? = studio.reports.first else {
            Issue.record("it began without: \(studio.reports)")
            return
        }
        studio.stop()
        #expect(abs(studio.outline(studio.file).milliseconds - 3_000 - Int64(tenths * 100)) < 150)
    }

    /// All of it is older than the picture when the file begins, and more follows.
    @Test(arguments: [InputCodec.vp8, .h264])
    func `has sound that nobody told of and that was there before the picture`(codec: InputCodec) {
        var studio = Studio(hasAudio: false)
        studio.codec = codec
        studio.pictureAge = .zero
        for _ in 0..<10 {
            studio.sendSound()
            studio.now = studio.now + .milliseconds(20)
        }
        studio.play(30)
        #expect(!studio.isOver)
        guard case .began(_, _, _, hasAudio: true)? = studio.reports.first else {
            Issue.record("it began without: \(studio.reports)")
            return
        }
        studio.stop()
        #expect(abs(studio.outline(studio.file).milliseconds - 3_000) < 150)
    }

    /// Of a sender whose machine stood still for a moment.
    @Test func `begins with a picture that is said to be of later than it came`() {
        var studio = Studio()
        studio.pictureAge = .seconds(-2)
        studio.play(30)
        studio.stop()
        #expect(abs(studio.outline(studio.file).milliseconds - 3_000) < 150)
    }

    @Test func `goes on in another where sound begins long after the picture`() {
        var studio = Studio(hasAudio: false)
        studio.play(20, hasSound: false)
        guard case .began(_, _, _, hasAudio: false)? = studio.reports.first else {
            Issue.record("it waits: \(studio.reports)")
            return
        }
        studio.play(10)
        #expect(studio.isOver)
        guard case .finished(_, .changed)? = studio.reports.last else {
            Issue.record("it goes on: \(studio.reports)")
            return
        }
    }

    @Test func `of nothing has no bytes`() {
        var studio = Studio()
        studio.stop()
        #expect(studio.file.isEmpty && studio.isOver)
        #expect(studio.reports == [.finished(milliseconds: 0, .stopped)])
    }
}
