import Base
import Codecs
import TestSupport
import Testing
import Wire

@testable import Transcoder

/// What is put into rings: 25 pictures a second, each in a packet.
private struct Source {
    var input = InputID(number: 1)
    var size = (width: 640, height: 360)
    var orientation: UInt8?
    private var count: Int64 = 0

    /// - Parameter seconds: since the beginning.
    mutating func packet(at seconds: Double, isKey: Bool, padding: Int = 0) -> InputPacket {
        count += 1
        var payload: [UInt8] = [0x10, isKey ? 0x10 : 0x11, 0, 0]
        if isKey {
            payload += [0x9D, 0x01, 0x2A]
            for side in [size.width, size.height] { payload += [UInt8(side & 0xFF), UInt8(side >> 8)] }
        }
        return InputPacket(
            sequenceNumber: count, timestamp: UInt32(seconds * 90_000), marker: true, codec: .vp8,
            isEntryPoint: isKey, arrival: time(seconds), orientation: orientation,
            payload: payload + [UInt8](repeating: 0, count: padding))
    }
}

private func time(_ seconds: Double) -> MonotonicTime {
    MonotonicTime(nanoseconds: 1_000_000_000 + Int64(seconds * 1e9))
}

@Suite struct `A ring of what a stream sent last` {
    private var ring = ClipRing()
    private var source = Source()

    /// Pictures from one time on to another, with a key frame every so many seconds.
    private mutating func fill(_ from: Int, _ to: Int, keyEvery interval: Int, padding: Int = 0) {
        for tick in from * 25..<to * 25 {
            let packet = source.packet(
                at: Double(tick) / 25, isKey: tick % (interval * 25) == 0, padding: padding)
            ring.append(packet, of: source.input)
        }
    }

    @Test mutating func `gives the last seconds, from the key frame before them on`() throws {
        fill(0, 60, keyEvery: 7)
        let slice = try #require(ring.slice(of: .seconds(30), at: time(60)))
        #expect(slice.begin == time(30) && slice.end == time(60) && slice.milliseconds == 30_000)
        let first = try #require(slice.packets.first?.packet)
        #expect(first.isEntryPoint && first.arrival == time(28))
        #expect(slice.packets.count == 32 * 25)
    }

    @Test mutating func `gives what there is where that is less`() throws {
        fill(0, 10, keyEvery: 2)
        let slice = try #require(ring.slice(of: .seconds(120), at: time(10)))
        #expect(slice.begin == time(0) && slice.milliseconds == 10_000)
        #expect(ring.slice(of: .seconds(30), at: time(0.9)) == nil, "less than a second")
        #expect(ring.slice(of: .seconds(3), at: time(60)) == nil, "nothing came since")
    }

    @Test func `has nothing at first`() {
        #expect(ring.slice(of: .seconds(30), at: time(60)) == nil)
    }

    @Test mutating func `keeps two minutes, and the group of pictures that they begin in`() throws {
        fill(0, 300, keyEvery: 10)
        ring.advance(to: time(299))
        let all = try #require(ring.slice(of: .seconds(120), at: time(299)))
        #expect(all.milliseconds == 120_000 && all.packets.first?.packet.arrival == time(170))
        #expect(all.packets.count == 130 * 25)
    }

    @Test mutating func `lets the oldest pictures go where they take too much memory`() throws {
        ring = ClipRing(limit: 1 << 20)
        fill(0, 60, keyEvery: 2, padding: 1_000)
        #expect(ring.byteCount <= 1 << 20)
        let slice = try #require(ring.slice(of: .seconds(60), at: time(60)))
        #expect(slice.milliseconds > 30_000 && slice.milliseconds < 36_000)
        #expect(slice.packets.first?.packet.isEntryPoint == true)
    }

    @Test mutating func `is empty rather than to begin where no decoder can`() {
        ring = ClipRing(limit: 1 << 20)
        fill(0, 60, keyEvery: 1_000, padding: 1_000)
        #expect(ring.slice(of: .seconds(60), at: time(60))?.packets.first?.packet.isEntryPoint != true)
        #expect(ring.byteCount <= 1 << 20)
    }

    @Test mutating func `wants a key frame when none came for long, once`() {
        fill(0, 25, keyEvery: 1_000)
        #expect(ring.takeKeyFrameWish(at: time(29)) == nil)
        #expect(ring.takeKeyFrameWish(at: time(30)) == source.input)
        #expect(ring.takeKeyFrameWish(at: time(31)) == nil)
        #expect(ring.takeKeyFrameWish(at: time(60)) == source.input)
        ring.close(source.input)
        #expect(ring.takeKeyFrameWish(at: time(300)) == nil)
    }

    @Test mutating func `goes on with sound alone when a picture is off for long`() throws {
        fill(0, 10, keyEvery: 2)
        for tick in 0..<1_000 {
            let packet = InputPacket(
                sequenceNumber: Int64(tick), timestamp: 0, marker: false, codec: .opus, isEntryPoint: true,
                arrival: time(10 + Double(tick) / 2))
            ring.append(packet, of: InputID(number: 9))
            ring.advance(to: packet.arrival)
        }
        let slice = try #require(ring.slice(of: .seconds(60), at: time(509.9)))
        #expect(slice.packets.allSatisfy { $0.packet.codec == .opus })
        #expect((119...121).contains(slice.packets.count) && slice.milliseconds == 59_500)
    }

    @Test mutating func `shows all in the size of the largest picture`() throws {
        fill(0, 4, keyEvery: 2)
        source.size = (1_280, 720)
        fill(4, 8, keyEvery: 2)
        source.size = (320, 180)
        fill(8, 12, keyEvery: 2)
        #expect(
            ring.slice(of: .seconds(12), at: time(12))?.canvas == VideoResolution(width: 1_280, height: 720))
        #expect(
            ring.slice(of: .seconds(3), at: time(12))?.canvas == VideoResolution(width: 320, height: 180))
        source.orientation = 1
        fill(12, 16, keyEvery: 2)
        #expect(
            ring.slice(of: .seconds(3), at: time(16))?.canvas == VideoResolution(width: 180, height: 320))
    }
}

@Suite struct `A clip` {
    /// Pictures of the size that their frame says.
    private final class Decoder: PictureDecoder {
        func decode(_ frame: [UInt8]) throws(CodecError) -> Picture? {
            guard frame.count >= 10 else { return try Picture(width: 320, height: 180) }
            return try Picture(
                width: Int(frame[6]) | Int(frame[7]) << 8, height: Int(frame[8]) | Int(frame[9]) << 8)
        }
    }

    private let codecs = Packager.Codecs(
        makePictureDecoder: { _, _ in Decoder() }, makeSoundDecoder: { _ in nil })

    /// All that is reported of a clip of the last seconds of ten.
    private func contents(of seconds: Int64, _ change: (inout Source, Int) -> Void = { _, _ in }) throws
        -> (contents: [ClipReport.Content], length: Int?)
    {
        var (ring, source) = (ClipRing(), Source())
        for tick in 0..<250 {
            change(&source, tick)
            ring.append(source.packet(at: Double(tick) / 25, isKey: tick % 50 == 0), of: source.input)
        }
        let cutter = ClipCutter(
            try #require(ring.slice(of: .seconds(seconds), at: time(10))), codecs: codecs)
        var contents: [ClipReport.Content] = []
        while !cutter.isOver { contents += cutter.advance() }
        return (contents, cutter.length)
    }

    /// The bytes of a file, which follow one another.
    private func file(_ contents: [ClipReport.Content]) throws -> [UInt8] {
        var file: [UInt8] = []
        for content in contents {
            guard case .bytes(let offset, let bytes) = content else { continue }
            #expect(offset == UInt64(file.count) && bytes.count <= RecordingReport.pieceLimit)
            file += bytes
        }
        return file
    }

    @Test(arguments: [Int64(1), 3, 7]) func `is as long as it was to be`(seconds: Int64) throws {
        let (contents, length) = try contents(of: seconds)
        #expect(length == Int(seconds) * 1_000)
        let file = try file(contents)
        #expect(file[4..<8].elementsEqual("ftyp".utf8))
    }

    @Test func `is one file although pictures change their size and proportions`() throws {
        let (contents, length) = try contents(of: 8) { source, tick in
            source.size = tick < 100 ? (640, 360) : tick < 200 ? (180, 320) : (320, 180)
        }
        #expect(length == 8_000)
        let file = try file(contents)
        let boxes = MP4Boxes(in: ByteSource(file), from: 0, to: Int64(file.count)).map(\.type)
        #expect(boxes.count { $0 == "moov" } == 1 && boxes.count { $0 == "moof" } == 16)
    }
}

@Suite struct `What is said of clips` {
    private static let reports = [
        ClipReport(number: 1, .accepted(milliseconds: 30_000)), ClipReport(number: 2, .refused),
        ClipReport(number: 3, .bytes(offset: 1 << 33, [1, 2, 3])),
        ClipReport(number: 4, .finished(milliseconds: 29_500)), ClipReport(number: .max, .failed),
    ]

    @Test(arguments: reports)
    func `survives being written, and no prefix does`(report: ClipReport) throws {
        #expect(try ClipReport(report.bytes) == report)
        for length in 0..<report.bytes.count {
            #expect(throws: WireError.self) { try ClipReport(Array(report.bytes[..<length])) }
        }
    }

    @Test func `is asked for in one message`() throws {
        let command = ClipCommand(number: 7, milliseconds: 120_000)
        #expect(try ClipCommand(command.bytes) == command)
        for length in 0..<command.bytes.count {
            #expect(throws: WireError.self) { try ClipCommand(Array(command.bytes[..<length])) }
        }
    }

    @Test func `of another kind is refused, and random bytes do no harm`() {
        #expect(throws: WireError.self) { try ClipReport([0, 0, 0, 0, 0, 0, 0, 1, 9]) }
        var random = SeededGenerator(seed: 7)
        for _ in 0..<2_000 {
            let bytes = (0..<Int.random(in: 0...40, using: &random)).map { _ in
                UInt8.random(in: 0...255, using: &random)
            }
            if let report = try? ClipReport(bytes) { #expect((try? ClipReport(report.bytes)) == report) }
        }
    }
}
