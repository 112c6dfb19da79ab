import Base
import Testing

@testable import sfu_bench

private func time(_ milliseconds: Int64) -> MonotonicTime {
    MonotonicTime(nanoseconds: milliseconds * 1_000_000)
}

/// Decimal fractions are mostly not exact in floating point, and a result that is cut off is one too small.
@Suite struct `A number that is given` {
    @Test(arguments: [
        ("64.1k", 64_100), ("32.3k", 32_300), ("2.01M", 2_010_000), ("4.1M", 4_100_000), ("8.2m", 8_200_000),
        ("16.4M", 16_400_000), ("1500K", 1_500_000), ("20000", 20_000), ("20000.4", 20_000),
        ("50M", 50_000_000), ("0", 0), ("0k", 0), ("-0M", 0),
    ])
    func `of bits a second is that number`(text: String, bits: Int) throws {
        #expect(try OptionValue.bitrate(text, "--bitrate", 20_000...50_000_000) == bits)
    }

    @Test(
        arguments: [
            ("9ms", 0.009), ("13ms", 0.013), ("119ms", 0.119), ("1500ms", 1.5), ("0.5ms", 0.0005),
            ("2.5s", 2.5), ("1.5m", 90), ("0.1h", 360), ("24h", 86_400), ("7", 7), ("0ms", 0),
        ] as [(String, Double)])
    func `of a time is that time`(text: String, seconds: Double) throws {
        #expect(try OptionValue.seconds(text, "--duration", 0...86_400) == seconds)
    }

    @Test(
        arguments: [
            ("1.001", 1_001_000_000), ("0.333", 333_000_000), ("2.002", 2_002_000_000),
            ("0.033367", 33_367_000), ("4", 4_000_000_000), ("0", 0), ("-0", 0),
            ("86400", 86_400_000_000_000), ("86400.1", nil), ("-0.001", nil), ("nan", nil), ("inf", nil),
            ("", nil), (" 1", nil), ("1s", nil), ("1,5", nil),
        ] as [(String, Int64?)])
    func `of seconds in a playlist is that time, up to a day`(text: String, nanoseconds: Int64?) {
        #expect(PlaylistText.nanoseconds(text[...]) == nanoseconds)
    }

    @Test(
        arguments: [
            ("0", 0), ("007", 7), ("999999999999", 999_999_999_999), ("1000000000000", nil), ("", nil),
            ("+1", nil), ("-1", nil), ("1.0", nil), ("1e3", nil), ("\u{661}", nil), (" 1", nil),
        ] as [(String, Int?)])
    func `in a playlist has twelve digits at most, and nothing else`(text: String, expected: Int?) {
        #expect(PlaylistText.number(text[...]) == expected)
        #expect(PlaylistText.number(nil) == nil && PlaylistText.nanoseconds(nil) == nil)
    }

    @Test(
        arguments: [
            ("1969-12-31T23:59:59.999Z", -1), ("2024-02-29T00:00:00Z", 1_709_164_800_000),
            ("2100-03-01T00:00:00Z", 4_107_542_400_000), ("2000-03-01T00:00:00Z", 951_868_800_000),
            ("1600-02-29T00:00:00Z", -11_670_998_400_000), ("9999-12-31T23:59:59Z", 253_402_300_799_000),
            // A leap second is the first one of the next minute.
            ("1970-01-01T00:00:60Z", 60_000), ("1970-01-01T00:00:00.0004Z", 0),
            ("1970-01-01T00:00:00.0005Z", 1), ("1970-01-01T00:00:59.9999Z", 60_000),
            ("1970-01-01T00:00:01.001Z", 1_001),
        ] as [(String, Int64)])
    func `of a date is counted from 1970`(text: String, milliseconds: Int64) {
        #expect(PlaylistText.milliseconds(date: text[...]) == milliseconds)
    }

    @Test(arguments: [
        "2026--11-21T03:40:07Z", "-2026-11-21T03:40:07Z", "2026-11-21-T03:40:07Z", "2026-11T03:40:07Z",
        "2026-00-10T03:40:07Z", "2026-11-00T03:40:07Z", "2026-11-32T03:40:07Z", "10000-11-21T03:40:07Z",
        "2026-11-21T24:00:00Z", "2026-11-21T23:60:00Z", "2026-11-21T23:59:61Z", "2026-11-21T03:40:-1Z",
        "2026-11-21T03::07Z", "2026-11-21T03:40Z", "2026-11-21T03:40:07:01Z", "2026-11-21TT03:40:07Z",
        "2026-11-21 03:40:07Z", "2026-11-21T03:40:07", "2026-11-21T03:40:nanZ",
    ])
    func `of no date is refused`(text: String) {
        #expect(PlaylistText.milliseconds(date: text[...]) == nil)
    }

    @Test(
        arguments: [(29, 50, 580), (29, 100, 290), (57, 100, 570), (58, 100, 580)] as [(Int, Double, Int64)])
    func `of events is due at the very moment of the last of them`(count: Int, rate: Double, at: Int64) {
        var cadence = Cadence(rate: rate)
        _ = cadence.due(at: time(1_000))
        let early = cadence.due(at: time(1_000 + at).advanced(byNanoseconds: -1))
        let last = cadence.due(at: time(1_000 + at))
        #expect(early == count - 1 && last == 1)
    }

    @Test(
        arguments: [("-1 hello", nil), ("-9223372036854775808 x", nil), ("0 x", 0), ("7", 7), ("", nil)]
            as [(String, Int64?)])
    func `in a text is a time only if this tool can have sent it`(text: String, expected: Int64?) {
        #expect(AudienceMessage.sentAt(text) == expected)
    }
}

@Suite struct `Numbers of a seed` {
    /// The values of the reference implementation for this seed.
    @Test func `are those of SplitMix64`() {
        var random = SplitMix64(seed: 1_234_567)
        let numbers = (0..<5).map { _ in random.next() }
        #expect(
            numbers == [
                6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423,
                4_593_380_528_125_082_431, 16_408_922_859_458_223_821,
            ])
    }
}

@Suite struct `Extensions of an encrypted packet` {
    /// The transport-wide number of extension 2 in one-byte form, behind which the ciphertext begins.
    private func number(_ elements: [UInt8], ciphertext: [UInt8] = [0x21, 0, 1, 0, 0]) -> UInt16? {
        var bytes: [UInt8] = [0x90, 96, 0, 1, 0, 0, 0, 1, 0, 0, 0, 2, 0xBE, 0xDE]
        bytes += [0, UInt8(elements.count / 4)] + elements + ciphertext
        return PublicHeader.transportNumber(in: bytes.span, id: 2)
    }

    @Test func `are read up to their end, not into the ciphertext`() {
        #expect(number([0x10, 9, 0x21, 0, 7, 0, 0, 0]) == 7)
        #expect(number([0, 0x21, 0, 7]) == 7)
        // The number begins within the extensions, and ends behind them.
        #expect(number([0x10, 9, 0x21, 7], ciphertext: [8, 9]) == nil)
        #expect(number([0, 0, 0, 0x21], ciphertext: [8, 9]) == nil)
    }

    /// RFC 8285 §4.2.
    @Test func `end where their list says so`() {
        #expect(number([0xF0, 9, 0x21, 0, 7, 0, 0, 0]) == nil)
        #expect(number([0x01, 9, 9, 0x21, 0, 7, 0, 0]) == nil)
        #expect(number([0xE0, 9, 0x21, 0, 7, 0, 0, 0]) == 7)
    }
}

@Suite struct `A measurement on a network` {
    private static let profile = NetworkProfile(
        name: "test", summary: "a test", seconds: 10, steps: [.init(start: 0, capacity: 5_000_000)],
        roundTrip: 0)

    @Test func `has the same rate in all samples of one length`() {
        let recorder = NetworkRecorder(Self.profile, at: .zero)
        for number in 1...50 {
            recorder.note(
                .init(offered: 25_000, delivered: 12_500), seconds: Double(number) / 5, height: nil,
                sound: (0, 0))
        }
        let samples = recorder.all.samples
        #expect(samples.allSatisfy { $0.sent == 1_000_000 && $0.delivered == 500_000 })
    }

    private func frozen(_ frames: [Int64], end: Double = 10) throws -> Double {
        var record = NetworkRecorder.Record()
        record.frames = frames.map { time($0) }
        var report = NetworkReport(layers: [], feedback: "x")
        let reason = report.add(record, of: Self.profile, began: time(0), end: end)
        #expect(reason == nil)
        return try #require(report.runs.first).frozen
    }

    @Test func `has no gaps in five pictures a second`() throws {
        #expect(try frozen((0...50).map { $0 * 200 }) == 0)
        // But in fewer than that.
        #expect(try frozen((0...49).map { $0 * 201 }) > 0.98)
    }

    @Test func `counts gaps up to its end alone`() throws {
        #expect(try frozen([5_000, 5_200, 7_200, 7_400, 9_900]) == 0.9)
        #expect(try frozen([5_000, 5_200, 7_200, 7_400, 9_900, 10_500]) == 0.9)
        #expect(try frozen([5_000, 12_000]) == 1)
        #expect(try frozen([10_000]) == 1)
        #expect(try frozen([9_800]) == 0)
        #expect(try frozen([250, 500], end: 0.75) == 1)
    }
}
