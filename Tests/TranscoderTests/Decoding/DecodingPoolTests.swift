import Base
import Codecs
import Synchronization
import Testing
import Wire

@testable import Transcoder

/// Counts the decoders of a test, those that are still there, and what they decode.
final class DecodingCounter: Sendable {
    private struct Counts {
        var made = 0
        var alive = 0
        var decoded = 0
    }

    private let counts = Mutex(Counts())

    var made: Int { counts.withLock { $0.made } }
    var alive: Int { counts.withLock { $0.alive } }
    var decoded: Int { counts.withLock { $0.decoded } }

    func noteDecoder(begins: Bool) {
        counts.withLock { counts in
            counts.made += begins ? 1 : 0
            counts.alive += begins ? 1 : -1
        }
    }

    func noteFrame() { counts.withLock { $0.decoded += 1 } }
}

/// Makes pictures whose width tells the frame, and none of a frame that is `broken`.
private final class NumberDecoder: PictureDecoder {
    static let broken: UInt8 = 255
    private let counter: DecodingCounter

    init(_ counter: DecodingCounter) {
        self.counter = counter
        counter.noteDecoder(begins: true)
    }

    deinit { counter.noteDecoder(begins: false) }

    func decode(_ frame: [UInt8]) throws(CodecError) -> Picture? {
        counter.noteFrame()
        guard let number = frame.first, number != Self.broken else { throw .failed }
        return try Picture(width: 16 + 2 * Int(number), height: 16)
    }
}

@Suite struct `A pool of decoders` {
    private let pool = DecodingPool()
    private let counter = DecodingCounter()

    private func member(_ source: UInt64 = 1, _ codec: VideoCodec = .vp8) -> PooledDecoder {
        pool.decoder(of: .init(key: SourceKey(number: source), codec: codec)) { [counter] in
            NumberDecoder(counter)
        }
    }

    /// - Parameter time: by the source's clock, in pictures; where another frame came at that time, they are told apart
    ///   by `number`.
    private static func frame(_ time: Int, _ number: UInt8? = nil, isKeyFrame: Bool = false) -> AssembledFrame
    {
        AssembledFrame(
            codec: .vp8, isKeyFrame: isKeyFrame, timestamp: UInt32(time) * 3_000, epoch: 0, arrival: .zero,
            captured: nil, orientation: nil, bytes: [number ?? UInt8(time % 100)])
    }

    /// What a member is shown of frames, as their numbers; nil where it is nothing.
    private func shown(_ times: Range<Int>, by member: PooledDecoder) throws -> [Int?] {
        try times.map { time in
            try member.decode(Self.frame(time, isKeyFrame: time == 0)).map { ($0.width - 16) / 2 }
        }
    }

    @Test func `decodes once what two take, whoever of them is first`() throws {
        let (one, other) = (member(), member())
        for time in 0..<300 {
            let order = time % 3 == 0 ? [other, one] : [one, other]
            for member in order {
                #expect(try shown(time..<(time + 1), by: member) == [time % 100])
            }
        }
        #expect(counter.decoded == 300)
        #expect(counter.made == 1)
    }

    @Test func `shows who comes later the present, and decodes nothing for it`() throws {
        let one = member()
        _ = try shown(0..<200, by: one)
        let late = member()
        let past = try shown(0..<200, by: late)
        #expect(past.last == 99)
        #expect(past.dropLast().allSatisfy { $0 == nil })
        #expect(try shown(200..<203, by: late) == [0, 1, 2])
        #expect(try shown(200..<203, by: one) == [0, 1, 2])
        #expect(counter.decoded == 203)
    }

    @Test func `keeps what somebody is behind with, up to a limit`() throws {
        let (one, slow) = (member(), member())
        _ = try shown(0..<1, by: one)
        _ = try shown(0..<1, by: slow)
        _ = try shown(1..<50, by: one)
        let rest = try shown(1..<50, by: slow)
        #expect(rest.suffix(DecodedChain.pictureLimit) == Array(38..<50))
        #expect(rest.dropLast(DecodedChain.pictureLimit).allSatisfy { $0 == nil })
        // Who was forgotten needs another key frame, and is with the others then.
        _ = try shown(50..<3_000, by: one)
        #expect(throws: CodecError.failed) { try slow.decode(Self.frame(50)) }
        #expect(try one.decode(Self.frame(3_000, isKeyFrame: true)) != nil)
        #expect(try slow.decode(Self.frame(3_000, isKeyFrame: true)) != nil)
        #expect(counter.decoded == 3_001)
    }

    @Test func `lets who leaves leave nothing to the others but what they have`() throws {
        var (one, other): (PooledDecoder?, PooledDecoder?) = (member(), member())
        _ = try shown(0..<10, by: #require(one))
        _ = try shown(0..<10, by: #require(other))
        one = nil
        #expect(try shown(10..<20, by: #require(other)) == Array(10..<20))
        #expect((counter.made, counter.alive, counter.decoded) == (1, 1, 20))
        other = nil
        #expect(counter.alive == 0)
        _ = member(2)
        #expect(pool.count == 1)
    }

    @Test func `tells each of what cannot be decoded, and has one decoder again after it`() throws {
        var members = [member(), member(), member()]
        for member in members { _ = try shown(0..<10, by: member) }
        for (index, member) in members.enumerated() {
            #expect(throws: CodecError.failed) { try member.decode(Self.frame(10, NumberDecoder.broken)) }
            // As an input does, which takes another one for the next key frame.
            members[index] = self.member()
            if index == 1 {
                #expect(try members[0].decode(Self.frame(11, isKeyFrame: true)) != nil)
            }
        }
        for member in members.dropFirst() {
            #expect(try member.decode(Self.frame(11, isKeyFrame: true)) != nil)
        }
        for member in members { #expect(try shown(12..<20, by: member) == Array(12..<20)) }
        #expect((counter.made, counter.alive, counter.decoded) == (2, 1, 20))
    }

    @Test func `shows nobody what follows from frames that they had not`() throws {
        let (one, other) = (member(), member())
        for member in [one, other] { _ = try shown(0..<10, by: member) }
        _ = try one.decode(Self.frame(10))
        #expect(throws: CodecError.failed) { try other.decode(Self.frame(10, 77)) }
        // The same bytes at another time are another frame.
        #expect(throws: CodecError.failed) { try other.decode(Self.frame(110)) }
        #expect(try one.decode(Self.frame(11)) != nil)
        for member in [other, one] { #expect(try member.decode(Self.frame(12, isKeyFrame: true)) != nil) }
        for member in [other, one] { #expect(try shown(13..<15, by: member) == [13, 14]) }
        #expect(counter.decoded == 15)
        #expect(counter.alive == 1)
    }

    @Test func `shows nobody what follows from nothing`() throws {
        let member = member()
        #expect(throws: CodecError.failed) { try member.decode(Self.frame(1)) }
        #expect(try shown(0..<3, by: member) == [0, 1, 2])
        #expect((counter.made, counter.decoded) == (1, 3))
    }

    @Test func `goes on from a key frame with who leaves out what was before`() throws {
        let (one, hasty) = (member(), member())
        for member in [one, hasty] { _ = try shown(0..<5, by: member) }
        #expect(try shown(5..<10, by: one) == Array(5..<10))
        for member in [one, hasty] { #expect(try member.decode(Self.frame(10, isKeyFrame: true)) != nil) }
        for member in [one, hasty] { #expect(try shown(11..<13, by: member) == [11, 12]) }
        #expect((counter.made, counter.decoded) == (1, 13))
    }

    @Test func `keeps sources and codecs apart`() throws {
        let members = [member(1), member(2), member(1, .h264)]
        for member in members { #expect(try shown(0..<3, by: member) == [0, 1, 2]) }
        #expect((counter.made, counter.decoded) == (3, 9))
    }

    @Test func `shows nothing where a codec cannot be decoded`() throws {
        let none = pool.decoder(of: .init(key: SourceKey(number: 9), codec: .av1)) { nil }
        #expect(try none.decode(Self.frame(0, isKeyFrame: true)) == nil)
        #expect(try none.decode(Self.frame(1)) == nil)
    }

    @Test func `decodes once what several threads take at the same time`() async throws {
        let numbers = try await withThrowingTaskGroup(of: [Int?].self) { group in
            for _ in 0..<4 {
                group.addTask { try shown(0..<500, by: member()) }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(numbers.count == 4)
        for shown in numbers {
            // Of what it was behind with it may have been shown nothing, but never anything else.
            for (time, number) in shown.enumerated() { #expect(number == nil || number == time % 100) }
            #expect(shown.last == 99)
        }
        // One that begins when another has ended finds nothing of it.
        #expect(counter.decoded.isMultiple(of: 500) && counter.decoded <= 2_000)
        #expect(counter.alive == 0)
    }
}

/// A publisher of VP8 before the packagers of its renditions, by a clock of the test's.
private struct RenditionsRig {
    private static let start = MonotonicTime(nanoseconds: 50_000_000_000)
    private static let input = InputID(number: 1)

    let counter = DecodingCounter()
    private let pool = DecodingPool()
    private var speaker: SyntheticSpeaker
    private(set) var packagers: [PackagedRendition: Packager] = [:]
    private(set) var parts: [PackagedRendition: [(part: PackagingReport.Part, milliseconds: Int)]] = [:]
    private(set) var sizes: [PackagedRendition: [VideoResolution]] = [:]
    private(set) var wishes = 0
    private(set) var pictures = 0
    /// Since the last key frame, as the server keeps it for who comes.
    private var cache: [InputPacket] = []

    init() throws { speaker = try SyntheticSpeaker(1, color: 0xC81E1E, frequency: 440) }

    private var now: MonotonicTime { Self.start + .milliseconds(Int64(milliseconds)) }
    private(set) var milliseconds = 0

    /// Begins a rendition, with what came since the last key frame.
    mutating func begin(_ rendition: PackagedRendition) {
        let packager = Packager(
            at: now,
            codecs: Packager.Codecs(
                makePictureDecoder: { [pool, counter] codec, _ in
                    pool.decoder(of: .init(key: SourceKey(number: 1), codec: codec)) {
                        CountedDecoder(codec, counter)
                    }
                }, makeSoundDecoder: { _ in nil }),
            request: PackagingRequest(rendition: rendition, origin: Self.start - .seconds(10)))
        packager.open(Self.input)
        for packet in cache { packager.receive(packet, of: Self.input, at: now) }
        packagers[rendition] = packager
    }

    mutating func end(_ rendition: PackagedRendition) { packagers[rendition] = nil }

    /// Lets a time go on, 30 pictures a second.
    /// - Parameter change: what becomes of the packets of a picture, by its number.
    mutating func run(until end: Int, _ change: (inout [InputPacket], Int) -> Void = { _, _ in }) throws {
        while milliseconds < end {
            pictures += 1
            milliseconds = pictures * 1_000 / 30
            var packets = try speaker.frame(at: now)
            change(&packets, pictures)
            if packets.first?.isEntryPoint == true { cache = [] }
            cache += packets
            for (rendition, packager) in packagers {
                for packet in packets { packager.receive(packet, of: Self.input, at: now) }
                take(packager.advance(to: now), of: rendition)
                if packager.takeKeyFrameWish(at: now) != nil {
                    wishes += 1
                    speaker.requestKeyFrame()
                }
            }
        }
    }

    private mutating func take(_ reports: [PackagingReport], of rendition: PackagedRendition) {
        for report in reports {
            switch report {
            case .began(let beginning): sizes[rendition, default: []].append(beginning.resolution)
            case .part(let part): parts[rendition, default: []].append((part, milliseconds))
            case .format, .sample: break
            }
        }
    }
}

private final class CountedDecoder: PictureDecoder {
    private let decoder: VideoDecoder
    private let counter: DecodingCounter

    init?(_ codec: VideoCodec, _ counter: DecodingCounter) {
        guard let decoder = try? VideoDecoder(codec) else { return nil }
        self.decoder = decoder
        self.counter = counter
        counter.noteDecoder(begins: true)
    }

    deinit { counter.noteDecoder(begins: false) }

    func decode(_ frame: [UInt8]) throws(CodecError) -> Picture? {
        counter.noteFrame()
        return try decoder.decode(frame)
    }
}

@Suite struct `Renditions of a stream` {
    @Test func `decode its pictures once, whoever comes and goes`() throws {
        var rig = try RenditionsRig()
        rig.begin(.source)
        try rig.run(until: 3_000)
        rig.begin(.low)
        try rig.run(until: 6_000)
        #expect(rig.counter.decoded == rig.pictures)
        // It has pictures at once, and begins with a segment of its own.
        let first = try #require(rig.parts[.low]?.first)
        #expect(first.part.startsSegment)
        #expect((3_400...4_000).contains(first.milliseconds))
        #expect(rig.sizes[.low] == [VideoResolution(width: 320, height: 180)])
        let second = try #require(rig.parts[.low]?.first { $0.part.endsSegment })
        #expect(second.milliseconds <= 3_000 + 2_500)
        rig.end(.source)
        try rig.run(until: 9_000)
        #expect(rig.counter.decoded == rig.pictures)
        #expect((rig.counter.made, rig.counter.alive) == (1, 1))
        let times = try #require(rig.parts[.low]).map(\.milliseconds)
        #expect(zip(times, times.dropFirst()).allSatisfy { (450...550).contains($1 - $0) })
        #expect((rig.sizes[.source]?.count, rig.sizes[.low]?.count) == (1, 1))
        rig.end(.low)
        #expect(rig.counter.alive == 0)
    }

    @Test func `go on together after a frame that no decoder takes`() throws {
        var rig = try RenditionsRig()
        for rendition in [PackagedRendition.source, .low] { rig.begin(rendition) }
        try rig.run(until: 4_000) { packets, number in
            guard number == 60 else { return }
            for index in packets.indices { packets[index].payload = [0x10, 0xFF] }
        }
        // Each asks for a key frame, and the picture of before stands until it is there.
        #expect((1...2).contains(rig.wishes))
        #expect((rig.counter.made, rig.counter.alive) == (2, 1))
        #expect(rig.counter.decoded <= rig.pictures)
        for rendition in [PackagedRendition.source, .low] {
            let times = try #require(rig.parts[rendition]).map(\.milliseconds)
            #expect(times.count >= 6)
            #expect(zip(times, times.dropFirst()).allSatisfy { (450...550).contains($1 - $0) })
            #expect(rig.sizes[rendition]?.count == 1)
        }
    }
}
