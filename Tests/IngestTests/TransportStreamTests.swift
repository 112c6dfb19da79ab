import Base
import Ingest
import TestSupport
import Testing
import Wire

@Suite struct TransportStreamTests {
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

    private static func picture(key: Bool, size: Int = 20) -> [UInt8] {
        let slice = [key ? 0x65 : 0x41, 0x88] + [UInt8](repeating: 0xAB, count: size - 2)
        return (key ? parameters : []) + [0, 0, 1] + slice
    }

    /// A frame of AAC-LC, 48 kHz, two channels.
    private static func frame(_ count: Int = 20) -> [UInt8] {
        let length = 7 + count
        let head: [UInt8] = [
            0xFF, 0xF1, 0x4C, 0x80 | UInt8(length >> 11), UInt8(length >> 3 & 0xFF),
            UInt8(length & 7) << 5 | 0x1F,
            0xFC,
        ]
        return head + [UInt8](repeating: 0x21, count: count)
    }

    private mutating func receive(_ bytes: [UInt8]) -> [IngestMedia.Effect] {
        stream.receive(bytes.span, at: now, into: &media)
    }

    private mutating func video(
        _ payload: [UInt8], at presentation: UInt64, decoding: UInt64? = nil
    ) -> [UInt8] {
        writer.unit(payload, of: TransportStreamWriter.video, presentation: presentation, decoding: decoding)
    }

    private mutating func audio(_ payload: [UInt8], at presentation: UInt64) -> [UInt8] {
        writer.unit(
            payload, of: TransportStreamWriter.audio, presentation: presentation, hasLength: true)
    }

    /// Two pictures, of which the first is known to be whole by the second, and two frames of sound.
    private mutating func whole() -> [UInt8] {
        writer.tables(Self.both) + video(Self.picture(key: true, size: 3_000), at: 9_000)
            + audio(Self.frame() + Self.frame(30), at: 9_000) + video(Self.picture(key: false), at: 12_000)
            + video(Self.picture(key: false), at: 15_000)
    }

    private static func pictures(_ effects: [IngestMedia.Effect]) -> [IngestPicture] {
        effects.compactMap { if case .picture(let picture) = $0 { picture } else { nil } }
    }

    private static func sounds(_ effects: [IngestMedia.Effect]) -> [IngestSound] {
        effects.compactMap { if case .sound(let sound) = $0 { sound } else { nil } }
    }

    private static func refusal(_ effects: [IngestMedia.Effect]) -> IngestEnd? {
        effects.lazy.compactMap { if case .refuse(let reason) = $0 { reason } else { nil } }.first
    }

    @Test mutating func `begins with pictures and sound as they are`() {
        let effects = receive(whole())
        guard case .begin(let formats)? = effects.first else {
            Issue.record("nothing begins: \(effects)")
            return
        }
        #expect(formats.resolution == VideoResolution(width: 640, height: 360))
        #expect(formats.sampleRate == 48_000 && formats.channels == 2 && formats.conversion == nil)
        let kept = media.open() + effects
        let pictures = Self.pictures(kept)
        #expect(pictures.map(\.isKeyFrame) == [true, false])
        #expect(pictures[1].timestamp &- pictures[0].timestamp == 33 * 90)
        // Each has its own time, and none a header.
        let sounds = Self.sounds(kept)
        #expect(sounds.map(\.bytes.count) == [20, 30])
        #expect(sounds[1].timestamp &- sounds[0].timestamp == 21 * 48)
        #expect(kept.contains(.soundFormat([0x11, 0x90])))
    }

    @Test(arguments: [1, 7, 188, 189, 1_316]) mutating func `is the same however it is cut`(size: Int) {
        let bytes = whole()
        var effects: [IngestMedia.Effect] = []
        for start in stride(from: 0, to: bytes.count, by: size) {
            effects += receive(Array(bytes[start..<min(start + size, bytes.count)]))
        }
        let cut = media.open() + effects
        var other = TransportStreamTests()
        let rest = other.receive(bytes)
        let whole = other.media.open() + rest
        #expect(cut == whole)
    }

    @Test mutating func `goes on with a key frame where a packet is missing`() {
        let begun = receive(whole())
        _ = media.open()
        #expect(Self.refusal(begun) == nil)
        var large = video(Self.picture(key: false, size: 1_000), at: 18_000)
        large.removeSubrange(188..<376)
        var effects = receive(large)
        effects += receive(video(Self.picture(key: false), at: 21_000))
        effects += receive(video(Self.picture(key: true), at: 24_000))
        effects += receive(video(Self.picture(key: false), at: 27_000))
        // The one before the gap, and the key frame.
        #expect(Self.pictures(effects).map(\.isKeyFrame) == [false, true])
    }

    @Test mutating func `goes over the leap of its clock`() {
        _ = receive(whole())
        _ = media.open()
        let last = UInt64(1) << 33
        var effects = receive(video(Self.picture(key: true), at: last - 3_000))
        for tick in [0, 3_000, 6_000] {
            effects += receive(video(Self.picture(key: false), at: UInt64(tick)))
        }
        let times = Self.pictures(effects).map(\.timestamp)
        #expect(times.count == 4)
        #expect((times.last ?? 0) &- (times.dropFirst().first ?? 0) <= 67 * 90)
    }

    @Test(arguments: [
        (UInt8(0x24), "HEVC isn't supported. Set the encoder to H.264"),
        (0x02, "MPEG-2 video isn't supported. Set the encoder to H.264"),
        (0x03, "MPEG audio isn't supported. Set the encoder to AAC"),
        (0x81, "AC-3 isn't supported. Set the encoder to AAC"),
    ]) mutating func `refuses in words what viewers cannot be given`(type: UInt8, words: String) {
        let effects = receive(writer.tables([(type, 0x100)]))
        guard case .unsupported(let text)? = Self.refusal(effects) else {
            Issue.record("not refused: \(effects)")
            return
        }
        #expect(text.contains(words))
    }

    @Test mutating func `gives up what is no transport stream`() {
        let patient = receive([UInt8](repeating: 0, count: 64 << 10))
        #expect(patient.isEmpty)
        let last = receive([0, 0])
        #expect(Self.refusal(last)?.name == "malformed")
    }

    @Test mutating func `survives anything`() {
        var random = SeededGenerator(seed: 17)
        let bytes = whole()
        for _ in 0..<200 {
            var broken = bytes
            for _ in 0..<20 {
                let place = Int(random.next() % UInt64(broken.count))
                broken[place] = UInt8(truncatingIfNeeded: random.next())
            }
            stream = TransportStreamMedia()
            media = IngestMedia(isDecoding: true, seed: 1)
            _ = receive(broken)
            _ = receive(Array(broken.prefix(Int(random.next() % UInt64(broken.count)))))
        }
    }
}
