import Base
import TestSupport
import Testing
import Wire

@testable import Ingest

/// An ADTS header of AAC-LC, 48 kHz, two channels.
private func header(of count: Int, hasChecksum: Bool = false) -> [UInt8] {
    let length = (hasChecksum ? 9 : 7) + count
    let kind: UInt8 = hasChecksum ? 0xF0 : 0xF1
    let head: [UInt8] = [
        0xFF, kind, 0x4C, 0x80 | UInt8(length >> 11), UInt8(length >> 3 & 0xFF),
        UInt8(length & 7) << 5 | 0x1F, 0xFC,
    ]
    return head + (hasChecksum ? [0, 0] : [])
}

private func frame(_ count: Int = 20) -> [UInt8] {
    header(of: count) + [UInt8](repeating: 0x21, count: count)
}

@Suite struct `A transport stream with faults and odd habits` {
    private var writer = TransportStreamWriter()
    private var stream = TransportStreamMedia()
    private var media = IngestMedia(isDecoding: true, seed: 42)
    private let now = MonotonicTime(nanoseconds: 5_000_000_000)

    /// Baseline, 640x360.
    private static let parameters = hexBytes(
        """
        00000001 0910 00000001 6742c01ed900a02ff970110000030001000003003c8f162e48
        00000001 68cb83cb20
        """)
    private static let both: [(type: UInt8, identifier: UInt16)] = [
        (0x1B, TransportStreamWriter.video), (0x0F, TransportStreamWriter.audio),
    ]

    private static func slice(_ type: UInt8) -> [UInt8] {
        [0, 0, 1, type, 0x88] + [UInt8](repeating: 0xAB, count: 18)
    }

    private static let key = parameters + slice(0x65)
    private static let other = slice(0x41)

    private mutating func receive(_ bytes: [UInt8]) -> [IngestMedia.Effect] {
        stream.receive(bytes.span, at: now, into: &media)
    }

    private mutating func video(_ payload: [UInt8], at presentation: UInt64?) -> [UInt8] {
        writer.unit(payload, of: TransportStreamWriter.video, presentation: presentation)
    }

    private mutating func audio(_ payload: [UInt8], at presentation: UInt64?) -> [UInt8] {
        writer.unit(payload, of: TransportStreamWriter.audio, presentation: presentation, hasLength: true)
    }

    /// Both tracks; the second picture is whole once a third one begins.
    private mutating func start() -> [UInt8] {
        writer.tables(Self.both) + video(Self.key, at: 9_000) + audio(frame(), at: 9_000)
            + video(Self.other, at: 12_000)
    }

    /// Has a session with both tracks.
    private mutating func begin() {
        let bytes = start()
        _ = receive(bytes)
        _ = media.open()
    }

    private static func pictures(_ effects: [IngestMedia.Effect]) -> [IngestPicture] {
        effects.compactMap { if case .picture(let picture) = $0 { picture } else { nil } }
    }

    private static func sounds(_ effects: [IngestMedia.Effect]) -> [IngestSound] {
        effects.compactMap { if case .sound(let sound) = $0 { sound } else { nil } }
    }

    private static func refusal(_ effects: [IngestMedia.Effect]) -> String? {
        effects.lazy.compactMap { if case .refuse(let reason) = $0 { reason.detail } else { nil } }.first
    }

    /// The packets of 188 bytes.
    private static func packets(_ bytes: [UInt8]) -> [[UInt8]] {
        stride(from: 0, to: bytes.count, by: 188).map { Array(bytes[$0..<min($0 + 188, bytes.count)]) }
    }

    // MARK: Packets

    /// The standard lets multiplexers send a packet twice; a network may add packets of nothing.
    @Test mutating func `is the same with each packet sent twice and nothing between them`() {
        let bytes = start() + video(Self.other, at: 15_000)
        let between: [UInt8] = [0x47, 0x1F, 0xFF, 0x10] + [UInt8](repeating: 0xFF, count: 184) + [1, 2, 3]
        let doubled = Self.packets(bytes).flatMap { $0 + between + $0 }
        let effects = receive(bytes)
        let kept = media.open()
        stream = TransportStreamMedia()
        media = IngestMedia(isDecoding: true, seed: 42)
        let again = receive(doubled)
        let keptAgain = media.open()
        #expect(Self.pictures(kept + effects).count == 2)
        #expect(again == effects && keptAgain == kept)
    }

    @Test(arguments: [(3, 0x80), (3, 0x40), (1, 0x80)] as [(Int, UInt8)])
    mutating func `has nothing of packets that are scrambled or damaged`(place: Int, bit: UInt8) {
        begin()
        var packets = Self.packets(video(Self.other, at: 15_000) + video(Self.key, at: 18_000))
        for index in packets.indices { packets[index][place] |= bit }
        let effects = receive(Array(packets.joined()))
        #expect(effects.isEmpty)
    }

    @Test(arguments: [true, false])
    mutating func `goes on over a jump of its counters that is announced`(isAnnounced: Bool) {
        begin()
        var packets = Self.packets(
            video(Self.other, at: 15_000) + video(Self.other, at: 18_000) + video(Self.other, at: 21_000))
        for index in packets.indices {
            let counter = (packets[index][3] + 5) & 0x0F
            packets[index][3] = packets[index][3] & 0xF0 | counter
        }
        // In the adaptation field, which is there because the picture does not fill the packet.
        if isAnnounced { packets[0][5] |= 0x80 }
        let effects = receive(Array(packets.joined()))
        #expect(Self.pictures(effects).count == (isAnnounced ? 3 : 0))
    }

    /// Without key frames: such encoders refresh a part of each picture.
    @Test mutating func `begins where a multiplexer says that decoders can`() {
        var bytes = writer.tables(Self.both) + audio(frame(), at: 9_000)
        var marked = video(Self.other, at: 9_000)
        // Not without parameter sets, whatever is said of it.
        marked[5] |= 0x40
        bytes += marked
        marked = video(Self.parameters + Self.other, at: 12_000)
        marked[5] |= 0x40
        bytes += marked + video(Self.other, at: 15_000) + video(Self.other, at: 18_000)
        let effects = receive(bytes)
        let kept = media.open()
        #expect(Self.refusal(effects) == nil)
        #expect(Self.pictures(kept).map(\.isKeyFrame) == [true, false])
    }

    // MARK: Tables

    @Test mutating func `goes on with a key frame where the pictures move elsewhere`() {
        begin()
        let tables = writer.tables([(0x1B, 0x110), (0x0F, TransportStreamWriter.audio)])
        let moved = [Self.other, Self.other, Self.key, Self.other].enumerated().flatMap { index, payload in
            writer.unit(payload, of: 0x110, presentation: 15_000 + 3_000 * UInt64(index))
        }
        let effects = receive(tables + moved)
        // The picture at the old place had not ended: those behind it may refer to it.
        #expect(Self.pictures(effects).map(\.isKeyFrame) == [true])
        let old = receive(video(Self.other, at: 27_000) + video(Self.other, at: 30_000))
        #expect(old.isEmpty)
    }

    @Test mutating func `may list more than fits a packet`() {
        let others = (0..<50).map { (type: UInt8(0x05), identifier: UInt16(0x200 + $0)) }
        let tables = writer.tables(others + Self.both)
        let rest = video(Self.key, at: 9_000) + audio(frame(), at: 9_000) + video(Self.other, at: 12_000)
        let effects = receive(tables + rest)
        guard case .begin(let formats)? = effects.first else {
            Issue.record("nothing begins: \(effects)")
            return
        }
        #expect(formats.hasVideo && formats.hasAudio)
    }

    @Test(
        arguments: [
            ([5, 4] + Array("Opus".utf8), "Opus in MPEG-TS isn't supported. Set the encoder to AAC"),
            ([0x0A, 4, 1, 2, 3, 4, 5, 4] + Array("AV01".utf8), "AV1 in MPEG-TS isn't supported"),
            // Of something else, of nothing, cut off, and longer than there is.
            ([5, 4] + Array("KLVA".utf8), nil), ([], nil), ([5, 4, 0x4F], nil), ([0x0A, 200, 5, 4], nil),
        ] as [([UInt8], String?)])
    mutating func `names what private data is`(descriptors: [UInt8], words: String?) {
        let effects = receive(writer.tables([(0x06, 0x100)], descriptors: descriptors))
        let refusal = Self.refusal(effects)
        #expect(refusal.map { $0.hasPrefix(words ?? "nothing") } == words.map { _ in true })
    }

    // MARK: Units

    @Test mutating func `goes on with a key frame where a picture has no time`() {
        begin()
        let bytes =
            video(Self.other, at: nil) + video(Self.other, at: 18_000) + video(Self.key, at: 21_000)
            + video(Self.other, at: 24_000)
        let effects = receive(bytes)
        #expect(Self.pictures(effects).map(\.isKeyFrame) == [false, true])
    }

    @Test mutating func `has a sound that goes on without times where it was`() {
        begin()
        let second = frame(30)
        // The second frame begins in one unit and ends in the next, which has no time.
        let (head, rest) = (Array(second.prefix(10)), Array(second.dropFirst(10)))
        let bytes =
            audio(frame() + head, at: 18_000) + audio(rest + frame(40), at: nil) + audio(frame(50), at: nil)
            + audio(frame(60), at: 27_000)
        let effects = receive(bytes)
        let sounds = Self.sounds(effects)
        #expect(sounds.map(\.bytes.count) == [20, 30, 40, 50, 60])
        let first = sounds.first?.timestamp ?? 0
        let times = sounds.map { Int($0.timestamp &- first) }
        // Milliseconds of 48 ticks; a frame lasts 21⅓.
        #expect(times == [0, 21 * 48, 42 * 48, 64 * 48, 100 * 48])
    }

    /// The end of a frame that began in the unit before is lost.
    @Test mutating func `joins no sound across a packet that is missing`() throws {
        begin()
        let cut = Array(frame(100).prefix(60))
        let first = audio(frame(30) + cut, at: 18_000)
        _ = audio(Array(frame(100).dropFirst(60)), at: nil)
        let last = audio(frame(40) + frame(50), at: 24_000)
        let effects = receive(first + last)
        let sounds = Self.sounds(effects)
        try #require(sounds.map(\.bytes.count) == [30, 40, 50])
        // 6,000 ticks of 90 kHz, and a frame, in whole milliseconds.
        #expect(sounds[1].timestamp &- sounds[0].timestamp == 66 * 48)
        #expect([21, 22].contains((sounds[2].timestamp &- sounds[1].timestamp) / 48))
    }

    @Test mutating func `has no sound before its first time`() {
        let bytes = writer.tables(Self.both) + audio(frame(), at: nil) + audio(frame(30), at: 9_000)
        _ = receive(bytes)
        let kept = media.open()
        #expect(Self.sounds(kept).map(\.bytes.count) == [30])
    }

    @Test mutating func `drops units that are too long for sound`() {
        begin()
        let long = writer.unit(
            Array(repeatElement(frame(), count: 2_700).joined()), of: TransportStreamWriter.audio,
            presentation: 18_000)
        let next = audio(frame(30), at: 21_000)
        let effects = receive(long + next)
        #expect(Self.sounds(effects).map(\.bytes.count) == [30])
    }

    /// The clock turns over every 26 hours: here between when a picture is decoded and when it is shown.
    @Test mutating func `keeps the order of times over the leap of its clock`() throws {
        let leap = UInt64(1) << 33
        var bytes = writer.tables(Self.both)
        bytes += audio(frame(), at: leap - 9_000)
        bytes += video(Self.key, at: leap - 9_000)
        bytes += writer.unit(
            Self.other, of: TransportStreamWriter.video, presentation: 3_000, decoding: leap - 3_000)
        bytes += audio(frame(30), at: leap - 960)
        bytes += audio(frame(40), at: 960)
        bytes += video(Self.other, at: 6_000)
        _ = receive(bytes)
        let kept = media.open()
        let pictures = Self.pictures(kept).map(\.timestamp)
        let sounds = Self.sounds(kept).suffix(2).map(\.timestamp)
        try #require(pictures.count == 2 && sounds.count == 2)
        // 12,000 ticks of 90 kHz, and a frame, in whole milliseconds.
        #expect([133, 134].contains((pictures[1] &- pictures[0]) / 90))
        #expect([21, 22].contains((sounds[1] &- sounds[0]) / 48))
    }
}

@Suite struct `Frames of AAC with headers of ADTS` {
    /// Where frames begin counts samples: a frame that began in an earlier piece is one before the piece.
    @Test(arguments: ChosenSeed.or(1...30))
    func `are the same however they are cut, with anything between them`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var bytes: [UInt8] = []
        var frames: [(start: Int, bytes: [UInt8])] = []
        for _ in 0..<60 {
            // No byte that could begin a header.
            for _ in 0..<max(0, Int.random(in: -6...6, using: &random)) {
                bytes.append(UInt8.random(in: 0...0xFE, using: &random))
            }
            let body = (0..<Int.random(in: 1...300, using: &random)).map { _ in
                UInt8.random(in: 0...0xFF, using: &random)
            }
            frames.append((bytes.count, body))
            bytes += header(of: body.count, hasChecksum: Bool.random(using: &random)) + body
        }
        var reader = ADTSReader()
        var found: [[UInt8]] = []
        var place = 0
        while place < bytes.count {
            let end = min(place + Int.random(in: 1...500, using: &random), bytes.count)
            var isFirst = true
            var samples = 0
            for frame in reader.read(Array(bytes[place..<end])) {
                let start = found.count < frames.count ? frames[found.count].start : 0
                if isFirst, start < place { samples = -1_024 }
                #expect(frame.offset == samples, "frame \(found.count) in \(place)..<\(end)")
                found.append(frame.bytes)
                samples += 1_024
                isFirst = false
            }
            place = end
        }
        #expect(found == frames.map(\.bytes))
    }

    @Test func `are none where the header makes no sense`() {
        var reader = ADTSReader()
        // Lengths of nothing and of a header alone; a reserved rate; several blocks; another layer.
        var short = frame()
        (short[3], short[4], short[5]) = (0x80, 0, 0x1F)
        var empty = frame()
        (empty[3], empty[4], empty[5]) = (0x80, 0, 7 << 5 | 0x1F)
        var rate = frame()
        rate[2] = 0x7C
        var blocks = frame()
        blocks[6] |= 1
        var layer = frame()
        layer[1] |= 2
        let found = reader.read(short + empty + rate + blocks + layer + frame(33))
        #expect(found.map(\.bytes.count) == [33])
    }

    @Test func `are never more than the bytes they come from`() {
        var random = SeededGenerator(seed: 3)
        for _ in 0..<200 {
            var reader = ADTSReader()
            var (given, found) = (0, 0)
            for _ in 0..<20 {
                let bytes = (0..<Int.random(in: 0...600, using: &random)).map { _ in
                    // Mostly of what headers are made of.
                    [0xFF, 0xF1, 0xF0, 0x4C, 0x00, UInt8.random(in: 0...255, using: &random)]
                        .randomElement(using: &random) ?? 0
                }
                given += bytes.count
                found += reader.read(bytes).reduce(0) { $0 + $1.bytes.count }
                #expect(found <= given)
            }
        }
    }
}
