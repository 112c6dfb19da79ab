import Base
import TestSupport
import Testing
import Wire

@testable import Ingest

@Suite struct `Media of an encoder with faults and odd habits` {
    private var media = IngestMedia(isDecoding: true, seed: 42)
    private var now = MonotonicTime(nanoseconds: 5_000_000_000)

    /// Baseline, 640x360.
    private static let configuration = hexBytes(
        """
        17 00 000000 01 42c01e ff e1 0019 6742c01ed900a02ff970110000030001000003003c8f162e48
        01 0005 68cb83cb20
        """)
    /// High, 640x360, in order.
    private static let high = hexBytes(
        """
        17 00 000000 01 64001e ff e1 001a 6764001eacb201405ff2e02200000300020000030079 1e2c5c90
        01 0006 68ebc3cb22c0
        """)
    private static let soundConfiguration = hexBytes("af 00 1190")

    /// A picture of units, each behind its length.
    private static func picture(key: Bool, units: [[UInt8]], delay: Int = 0) -> [UInt8] {
        let time = [16, 8, 0].map { UInt8(truncatingIfNeeded: delay >> $0) }
        var bytes: [UInt8] = [key ? 0x17 : 0x27, 1] + time
        for unit in units {
            bytes.append(bigEndian: UInt32(unit.count))
            bytes += unit
        }
        return bytes
    }

    private static func picture(key: Bool, delay: Int = 0) -> [UInt8] {
        picture(key: key, units: [[key ? 0x65 : 0x41, 0x88, 0xAB]], delay: delay)
    }

    private mutating func video(_ bytes: [UInt8], at timestamp: UInt32 = 0) -> [IngestMedia.Effect] {
        media.receive(video: bytes.span, timestamp: timestamp, at: now)
    }

    private mutating func audio(_ bytes: [UInt8], at timestamp: UInt32 = 0) -> [IngestMedia.Effect] {
        media.receive(audio: bytes.span, timestamp: timestamp, at: now)
    }

    private mutating func begin() {
        _ = video(Self.configuration)
        _ = audio(Self.soundConfiguration)
        _ = media.open()
    }

    private static func pictures(_ effects: [IngestMedia.Effect]) -> [IngestPicture] {
        effects.compactMap { if case .picture(let picture) = $0 { picture } else { nil } }
    }

    private static func formats(_ effects: [IngestMedia.Effect]) -> IngestFormats? {
        effects.lazy.compactMap { if case .begin(let formats) = $0 { formats } else { nil } }.first
    }

    private static func refusal(_ effects: [IngestMedia.Effect]) -> String? {
        effects.lazy.compactMap { if case .refuse(let reason) = $0 { reason.detail } else { nil } }.first
    }

    // MARK: Times

    /// Random numbers that time stamps and packets begin with, just before they turn over.
    @Test mutating func `goes on where RTP counts from zero again`() throws {
        media = IngestMedia(isDecoding: true, seed: 0xFFFF_FFF0 << 16)
        begin()
        let effects = video(Self.picture(key: true)) + video(Self.picture(key: false), at: 33)
        let times = Self.pictures(effects).map(\.timestamp)
        #expect(times == [0xFFFF_FFF0, 0xFFFF_FFF0 &+ 33 * 90])
        var packetizer = PicturePacketizer(seed: 0xFFFF << 32)
        let packets = packetizer.packets(of: [[UInt8]](repeating: [1], count: 70_000), timestamp: 9)
        var (number, markers) = (UInt16(0x7FFF), 0)
        var isInOrder = true
        for packet in packets {
            let header = try RTPHeader(parsing: packet.span)
            isInOrder = isInOrder && header.sequenceNumber == number
            markers += header.marker ? 1 : 0
            number &+= 1
        }
        let last = try #require(packets.last)
        let isLast = try RTPHeader(parsing: last.span).marker
        #expect(isInOrder && markers == 1 && isLast)
    }

    /// FLV tells the distance from decoding to presentation in 24 bits.
    @Test(arguments: [-8_388_608, -10, -1, 0, 1, 2_000, 2_001, 8_388_607])
    mutating func `calculates with any composition offset`(delay: Int) {
        begin()
        var effects = video(Self.picture(key: true, delay: delay))
        effects += video(Self.picture(key: false, delay: delay), at: 33)
        let pictures = Self.pictures(effects)
        #expect(Self.refusal(effects) == nil && pictures.count == 2)
        #expect(pictures.last?.timestamp == pictures.first.map { $0.timestamp &+ 33 * 90 })
        // Nobody captures a picture hours before it is shown.
        #expect(pictures.first?.captured == now + .milliseconds(min(max(delay, 0), 2_000)))
    }

    // MARK: Memory

    @Test mutating func `keeps few of many tiny frames while there is no session`() {
        _ = video(Self.configuration)
        _ = audio(Self.soundConfiguration)
        for _ in 0..<100_000 { _ = audio([0xAF, 1, 7]) }
        let held = media.open()
        #expect(held.count < IngestMedia.heldLimit / 100)
        #expect(held.first == .soundFormat([0x11, 0x90]))
    }

    @Test mutating func `keeps the latest of many formats while there is no session`() {
        _ = video(Self.configuration)
        let formats = [Self.soundConfiguration, hexBytes("af 00 1210")]
        for index in 0..<100_000 { _ = audio(formats[index % 2]) }
        let held = media.open()
        #expect(held.count < IngestMedia.heldLimit / 100)
        #expect(held.last == .soundFormat([0x12, 0x10]))
    }

    @Test mutating func `keeps few of many tiny packets while there is no session`() {
        _ = video(Self.configuration)
        _ = audio(Self.soundConfiguration)
        let units = [[UInt8]](repeating: [0x65], count: 1_000)
        for _ in 0..<100 { _ = video(Self.picture(key: true, units: units)) }
        let packets = Self.pictures(media.open()).reduce(0) { $0 + $1.packets.count }
        #expect(packets <= IngestMedia.heldLimit / 128)
    }

    // MARK: Tracks

    @Test mutating func `tells once of a track that comes too late`() {
        _ = video(Self.configuration)
        now = now + .seconds(1)
        let begun = Self.formats(media.advance(to: now))
        #expect(begun?.hasVideo == true && begun?.hasAudio == false)
        let late = audio(Self.soundConfiguration)
        let later = audio(hexBytes("af 00 1210"))
        #expect(late == [.notice(.cameTooLate(isAudio: true))])
        #expect(!later.contains(.notice(.cameTooLate(isAudio: true))))
    }

    @Test mutating func `tells once of pictures that come too late`() {
        _ = audio(Self.soundConfiguration)
        now = now + .seconds(1)
        let begun = Self.formats(media.advance(to: now))
        #expect(begun?.hasVideo == false && begun?.hasAudio == true)
        let late = video(Self.configuration)
        let again = video(Self.high)
        #expect(late == [.notice(.cameTooLate(isAudio: false))] && again.isEmpty)
    }

    @Test(
        arguments: [
            ([.init("audiocodecid", .string("mp4a"))], false), ([.init("audiocodecid", .number(10))], false),
            ([.init("videocodecid", .number(7)), .init("audiocodecid", .number(0))], true),
            ([.init("videocodecid", .string("avc1")), .init("audiocodecid", .string(""))], true),
            ([.init("videocodecid", .number(7)), .init("audiocodecid", .boolean(true))], true),
            ([.init("width", .number(640))], true), ([], false),
        ] as [([AMF0Value.Member], Bool)])
    mutating func `waits for the sound that its metadata names`(members: [AMF0Value.Member], isMet: Bool) {
        let told = media.receive(metadata: members, at: now)
        let configured = video(Self.configuration)
        #expect(told.isEmpty && (Self.formats(configured) != nil) == isMet)
    }

    /// Further languages or smaller pictures, of which some have codecs that are not accepted.
    @Test mutating func `leaves out further tracks of Enhanced RTMP, and goes on`() {
        begin()
        let pictures = video(hexBytes("a6 01 68766331 01 000000 aa"))
        let sound = audio(hexBytes("95 00 4f707573 01 01"))
        let first = video(Self.picture(key: true), at: 33)
        #expect(pictures.isEmpty && sound.isEmpty && Self.pictures(first).count == 1)
    }

    private mutating func announceBoth() {
        _ = media.receive(
            metadata: [.init("videocodecid", .number(7)), .init("audiocodecid", .number(10))], at: now)
    }

    /// As from an encoder by SRT that is connected in the middle of a group of pictures.
    @Test mutating func `waits for pictures that it announced while its sound goes on`() {
        let start = now
        announceBoth()
        _ = audio(Self.soundConfiguration)
        for index in 0..<40 {
            now = start + .milliseconds(index * 100)
            let effects = audio(hexBytes("af 01 2110"), at: UInt32(index * 100))
            #expect(effects.isEmpty)
        }
        #expect(media.deadline == start + .seconds(5))
        let begun = Self.formats(video(Self.configuration, at: 3_900))
        #expect(begun?.hasVideo == true && begun?.hasAudio == true)
        // Viewers get no more of the wait than its last second.
        let sounds = media.open().filter { if case .sound = $0 { true } else { false } }
        #expect(sounds.count == 11)
    }

    @Test mutating func `begins without pictures that it announced and does not send`() {
        announceBoth()
        _ = audio(Self.soundConfiguration)
        let early = media.advance(to: now + .milliseconds(4_999))
        let begun = Self.formats(media.advance(to: now + .seconds(5)))
        #expect(early.isEmpty && begun?.hasVideo == false && begun?.hasAudio == true)
    }

    @Test mutating func `asks the first picture about its order, however late it comes`() {
        announceBoth()
        _ = audio(Self.soundConfiguration)
        now = now + .seconds(3)
        // Of high profile, without anything on usability.
        let silent = hexBytes(
            "17 00 000000 01 64001e ff e1 000c 6764001eacd940a02ff97011 01 0006 68ebe3cb22c0")
        let configured = video(silent)
        let begun = Self.formats(video(Self.picture(key: true, delay: 66)))
        #expect(configured.isEmpty && begun?.conversion == .reordering)
    }

    @Test mutating func `has pictures from the latest key frame on after a long wait for its sound`() {
        let start = now
        announceBoth()
        _ = video(Self.configuration)
        for index in 0...8 {
            now = start + .milliseconds(index * 500)
            let effects = video(Self.picture(key: index % 3 == 0), at: UInt32(index * 500))
            #expect(effects.isEmpty)
        }
        let begun = Self.formats(audio(Self.soundConfiguration))
        let pictures = Self.pictures(media.open())
        #expect(begun?.hasAudio == true && pictures.map(\.isKeyFrame) == [true, false, false])
    }

    @Test mutating func `follows other pictures and another sound in the middle`() throws {
        begin()
        let before = Self.pictures(video(Self.picture(key: true)))
        let changed = video(Self.high, at: 33)
        let after = Self.pictures(video(Self.picture(key: true), at: 33))
        #expect(changed.isEmpty)
        // An aggregate of both parameter sets precedes the slice.
        let sizes = try [before, after].map { try #require($0.first?.packets.first).count }
        #expect(sizes == [12 + 1 + 2 + 25 + 2 + 5, 12 + 1 + 2 + 26 + 2 + 6])
        let same = audio(Self.soundConfiguration, at: 40)
        let other = audio(hexBytes("af 00 1210"), at: 40)
        let empty = audio(hexBytes("af 01"), at: 40)
        #expect(same.isEmpty && other == [.soundFormat([0x12, 0x10])] && empty.isEmpty)
    }

    @Test mutating func `cannot change its codec in the middle`() {
        begin()
        let vp9: [UInt8] = [0x90] + Array("vp09".utf8) + hexBytes("00 0a 82 020202 0000")
        let effects = video(vp9)
        #expect(Self.refusal(effects)?.contains("codec changed") == true)
    }

    // MARK: Units

    @Test mutating func `is sent without what decoders do not need`() throws {
        begin()
        _ = video(Self.picture(key: true))
        let filler = [UInt8](repeating: 0xFF, count: 3_000)
        let units: [[UInt8]] = [[9, 0xF0], [0x41, 0x88, 1], [], [12] + filler, [10], [11]]
        let pictures = Self.pictures(video(Self.picture(key: false, units: units), at: 33))
        let packet = try #require(pictures.first?.packets.first)
        #expect(pictures.count == 1 && pictures.first?.packets.count == 1)
        #expect(Array(packet.dropFirst(12)) == [0x41, 0x88, 1])
    }

    /// Viewers would see grey until the next key frame.
    @Test mutating func `does not begin with a key frame that has no picture`() {
        begin()
        let empty = video(Self.picture(key: true, units: [[12, 0xFF]]))
        let other = video(Self.picture(key: false), at: 33)
        #expect(empty.isEmpty && other.isEmpty)
        let key = video(Self.picture(key: true), at: 66)
        let nothing = video(Self.picture(key: true, units: []), at: 70)
        let next = video(Self.picture(key: false), at: 99)
        // In the middle one of nothing is no reason to wait for another.
        #expect(Self.pictures(key).count == 1 && nothing.isEmpty && Self.pictures(next).count == 1)
    }

    @Test(arguments: [false, true])
    mutating func `drops pictures up to a key frame after one that makes no sense`(isCutOff: Bool) {
        begin()
        _ = video(Self.picture(key: true))
        // Cut off, or of more units than a picture has.
        let many = Self.picture(key: false, units: [[UInt8]](repeating: [0x41], count: 5_000))
        let broken = isCutOff ? Array(Self.picture(key: false).dropLast()) : many
        let effects = video(broken, at: 33) + video(Self.picture(key: false), at: 66)
        #expect(effects.isEmpty)
        let key = video(Self.picture(key: true), at: 99)
        #expect(Self.pictures(key).count == 1)
    }

    @Test(
        arguments: [
            // Of 65 bytes, of a reserved rate, of eight channels and more, cut off, of nothing.
            [0x11, 0x90] + [UInt8](repeating: 0, count: 63), [0x16, 0x90], [0x11, 0xC0], [0x11], [],
        ] as [[UInt8]])
    mutating func `cannot have a sound that decoders do not know`(configuration: [UInt8]) {
        let effects = audio([0xAF, 0] + configuration)
        #expect(Self.refusal(effects)?.contains("AAC-LC") == true)
    }

    /// Encoders send them to keep a connection alive, or in a version that we do not know.
    @Test mutating func `may have messages of nothing`() {
        begin()
        var effects = audio([]) + audio([0xAF])
        for bytes in [[], [0x17], [0x17, 1, 0, 0], [0x57, 0], [0x17, 2, 0, 0, 0]] as [[UInt8]] {
            effects += video(bytes)
        }
        #expect(effects.isEmpty)
        // A header of Enhanced RTMP that is cut off is one of a codec that nobody knows.
        let cutOff = video([0x90, 0x61, 0x76])
        #expect(Self.refusal(cutOff)?.contains("cut off") == true)
    }
}
