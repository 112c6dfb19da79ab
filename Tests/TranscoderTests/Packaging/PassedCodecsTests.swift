import Base
import TestSupport
import Testing
import Wire

@testable import Transcoder

/// A publisher's frames as RTP carries them, each in one packet.
private enum Payloads {
    static func make(
        _ codec: VideoCodec, _ count: Int, group: Int = 40, pixels: String = "yuv420p"
    ) throws -> [[UInt8]] {
        let frames = try SampleVideo.frames(
            codec, width: 320, height: 180, count: count, group: group, pixels: pixels)
        return try frames.enumerated().map { index, frame in
            let isKeyFrame = index % group == 0
            switch codec {
            // Descriptors of 8 bits: what begins and ends a frame, made of others or not.
            case .vp8: return [0x10] + frame
            case .vp9: return [isKeyFrame ? 0x0C : 0x4C] + frame
            case .av1:
                let units = try AV1Units(parsing: frame.span).all.map(\.bytes)
                return units.reduce([isKeyFrame ? 0x08 : 0x00]) { payload, unit in
                    payload + [UInt8(unit.count & 0x7F | 0x80), UInt8(unit.count >> 7)] + unit
                }
            case .h264, .hevc: return frame
            }
        }
    }
}

extension PassRig {
    /// Sends frames, each 20 ms after its capture.
    fileprivate func play(_ frames: [[UInt8]], _ codec: VideoCodec, from first: Int = 0) throws {
        for (index, frame) in frames.enumerated() {
            run(until: Int64(first + index) * 1_000 / 30 + 20)
            try send(frame, first + index, codec: codec)
        }
    }
}

/// The content of a box that has no others in it, wherever it lies.
private func box(_ type: String, in bytes: [UInt8]) -> [UInt8]? {
    let start = bytes.indices.dropLast(7).first { bytes[($0 + 4)..<($0 + 8)].elementsEqual(type.utf8) }
    guard let start else { return nil }
    let size = bytes[start..<(start + 4)].reduce(0) { $0 << 8 | Int($1) }
    return start + size <= bytes.count ? Array(bytes[(start + 8)..<(start + size)]) : nil
}

/// Bytes of the slices in a frame of HEVC with start codes.
private func slices(of frame: [UInt8]) -> Int {
    let starts = frame.indices.dropFirst(3).filter { frame[($0 - 3)..<$0] == [0, 0, 1] }
    return zip(starts, starts.dropFirst() + [frame.count + 3]).reduce(0) { sum, unit in
        frame[unit.0] >> 1 & 0x3F < 32 ? sum + unit.1 - 3 - unit.0 : sum
    }
}

@Suite struct `HEVC, VP9 and AV1 of a publisher` {
    private static let codecs: [VideoCodec] = [.hevc, .vp9, .av1]

    @Test(arguments: codecs) func `are passed on as they are, and never decoded`(_ codec: VideoCodec) throws {
        let rig = PassRig(.original) { _ in
            Issue.record("something is decoded")
            return nil
        }
        let frames = try Payloads.make(codec, 180)
        try rig.play(frames, codec)
        let beginning = try #require(rig.beginnings.first)
        #expect(rig.beginnings.count == 1 && beginning.framesPerSecond == nil)
        #expect(beginning.resolution == VideoResolution(width: 320, height: 180))
        let names: [VideoCodec: String] = [
            .vp9: "vp09.00.20.08", .av1: "av01.0.00M.08", .hevc: "hvc1.1.6.L60.90",
        ]
        #expect(beginning.codecs == (names[codec] ?? "") + ",mp4a.40.2")
        #expect(rig.segments.count >= 3 && rig.segments.allSatisfy { (1_333...1_334).contains($0) })
        #expect(rig.parts.allSatisfy { $0.milliseconds == 500 || $0.endsSegment })
        #expect(!rig.packager.hasFailed)
        // All that was sent is there; of AV1 without a delimiter, which MP4 has no use for, of HEVC the slices.
        let made = rig.parts.reduce(0) { $0 + $1.bytes.count }
        #expect(made > frames.prefix(140).reduce(0) { $0 + (codec == .hevc ? slices(of: $1) : $1.count) })
    }

    /// - Source: VP Codec ISO Media File Format Binding (vpcC), AV1 Codec ISO Media File Format Binding §2.3.3 (av1C).
    @Test(arguments: codecs) func `have boxes that say what their codecs do`(_ codec: VideoCodec) throws {
        let rig = PassRig(.original)
        try rig.play(try Payloads.make(codec, 60), codec)
        let initialization = try #require(rig.beginnings.first).initialization
        if codec == .hevc {
            let record = try #require(box("hvcC", in: initialization))
            let configuration = try HEVCConfiguration(parsing: record.span)
            #expect(configuration.resolution == VideoResolution(width: 320, height: 180))
            #expect(configuration.profile == 1 && configuration.parameterSets.count == 3)
            // With room for no other parameter sets than these, which are in no picture.
            #expect(initialization.indices.contains { initialization[$0...].starts(with: "hvc1".utf8) })
            #expect(record[23] == 0x80 | 32)
            let made = rig.parts.flatMap(\.bytes)
            let set = Array(configuration.parameterSets[1].prefix(20))
            #expect(!made.indices.contains { made[$0] == set[0] && made[$0...].starts(with: set) })
        } else if codec == .vp9 {
            let record = try #require(box("vpcC", in: initialization))
            // Version 1 and no flags; profile 0, level 2.0; 8 bits, 4:2:0, not of full range.
            #expect(record.prefix(6) == [1, 0, 0, 0, 0, 20])
            #expect(
                record.count == 12 && record[6] >> 4 == 8 && record[6] >> 1 & 0x07 <= 1 && record[6] & 1 == 0)
        } else {
            let record = try #require(box("av1C", in: initialization))
            // Version 1; profile 0, level 2.0; main tier, 8 bits, in colour, 4:2:0.
            #expect(record.prefix(2) == [0x81, 0x00] && record.count > 4)
            #expect(record[2] & 0xFC == 0x0C)
            let configuration = try AV1Configuration(parsing: record.span)
            #expect(configuration.resolution == VideoResolution(width: 320, height: 180))
            #expect(configuration.bitDepth == 8 && configuration.profile == 0)
        }
    }

    /// Who has no decoder for them gets H.264.
    @Test(arguments: codecs) func `are encoded anew in the source`(_ codec: VideoCodec) throws {
        let rig = PassRig()
        try rig.play(try Payloads.make(codec, 60), codec)
        #expect(rig.beginnings.map(\.framesPerSecond) == [30])
        #expect(rig.beginnings.first?.codecs.hasPrefix("avc1.") == true)
        #expect(rig.beginnings.first?.resolution == VideoResolution(width: 320, height: 180))
    }

    @Test(arguments: [VideoCodec.vp9, .av1]) func `are encoded anew where they have more bits`(
        _ codec: VideoCodec
    ) throws {
        let rig = PassRig(.original)
        try rig.play(try Payloads.make(codec, 60, pixels: "yuv420p10le"), codec)
        #expect(!rig.beginnings.isEmpty && rig.beginnings.allSatisfy { $0.framesPerSecond == 30 })
        #expect(rig.beginnings.allSatisfy { $0.codecs.hasPrefix("avc1.") })
    }

    /// They stay in the order in which they are decoded, and are shown when they were captured.
    @Test func `are reordered in HEVC`() throws {
        let rig = PassRig(.original, origin: PassRig.start - .seconds(10)) { _ in
            Issue.record("something is decoded")
            return nil
        }
        for (index, (frame, place)) in try SampleVideo.reorderedHEVC(count: 160).enumerated() {
            // Nothing is sent before it was captured.
            rig.run(until: Int64(index + 4) * 1_000 / 30 + 20)
            try rig.send(frame, place, codec: .hevc)
        }
        #expect(rig.beginnings.map(\.framesPerSecond) == [nil])
        #expect(rig.segments.count >= 2 && rig.segments.allSatisfy { (1_333...1_334).contains($0) })
        let file = try #require(rig.beginnings.first).initialization + rig.parts.flatMap(\.bytes)
        let listed = try SampleVideo.ffmpeg(
            ["-copyts", "-i", "-", "-map", "0:v", "-c", "copy", "-f", "framecrc", "-"], input: file)
        let lines = String(decoding: listed, as: UTF8.self).split(separator: "\n").filter {
            !$0.hasPrefix("#")
        }
        let times = lines.compactMap { line in
            let fields = line.split { $0 == "," || $0 == " " }
            return fields.count > 2 ? Int(fields[2]) : nil
        }
        #expect(times.count >= 110 && times != times.sorted())
        // Each a thirtieth of a second after the last; what is written ends between pictures that belong together.
        let shown = times.sorted().dropLast(4)
        let steps = zip(shown.dropFirst(), shown).map { $0 - $1 }
        let step = try #require(steps.min())
        #expect(step > 0 && (steps.max() ?? 0) <= step + step / 20, "\(steps)")
    }

    /// It would be shown before it is decoded.
    @Test func `are decoded where HEVC pauses between pictures that belong together`() throws {
        let rig = PassRig(.original, origin: PassRig.start - .seconds(10))
        for (index, (frame, place)) in try SampleVideo.reorderedHEVC(count: 100).enumerated() {
            // The picture that the next three need is captured 0.6 s later, and all that follows.
            let late = place >= 64 ? 18 : 0
            rig.run(until: Int64(max(index, index >= 61 ? index + 18 : 0) + 4) * 1_000 / 30 + 20)
            try rig.send(frame, place + late, codec: .hevc)
        }
        #expect(rig.beginnings.map(\.framesPerSecond).prefix(2) == [nil, 30])
        #expect(!rig.packager.hasFailed)
    }

    /// A decoder that began with the key frame could not show them.
    @Test func `are decoded where HEVC shows something before its key frame`() throws {
        let rig = PassRig(.original)
        let frames = try Payloads.make(.hevc, 60)
        for (index, frame) in frames.enumerated() {
            rig.run(until: Int64(index) * 1_000 / 30 + 120)
            try rig.send(frame, index == 2 ? 0 : index + 1, codec: .hevc)
        }
        #expect(rig.beginnings.map(\.framesPerSecond) == [nil, 30])
    }

    /// Whoever plays HEVC plays its second profile.
    @Test func `have ten bits in HEVC`() throws {
        let rig = PassRig(.original)
        try rig.play(try Payloads.make(.hevc, 60, pixels: "yuv420p10le"), .hevc)
        #expect(rig.beginnings.map(\.framesPerSecond) == [nil])
        #expect(rig.beginnings.first?.codecs == "hvc1.2.4.L60.90,mp4a.40.2")
        let other = PassRig(.original)
        try other.play(try Payloads.make(.hevc, 60, pixels: "yuv422p"), .hevc)
        #expect(!other.beginnings.isEmpty && other.beginnings.allSatisfy { $0.framesPerSecond == 30 })
    }

    /// What plays them must go on when their publisher's key frames stay away, or its codec is another one.
    @Test func `go on in H.264 where they cannot be passed on any longer`() throws {
        let rig = PassRig(.original)
        try rig.play(try Payloads.make(.vp9, 150, group: 300), .vp9)
        #expect(rig.beginnings.map(\.framesPerSecond) == [nil, 30])
        #expect(rig.beginnings.map { $0.codecs.prefix(4) } == ["vp09", "avc1"])
        #expect(rig.segments.allSatisfy { $0 < 2_500 })
        let other = PassRig(.original)
        try other.play(try Payloads.make(.av1, 60), .av1)
        try other.play(try Payloads.make(.vp8, 60, group: 300), .vp8, from: 60)
        #expect(other.beginnings.map { $0.codecs.prefix(4) } == ["av01", "avc1"])
    }

    /// Players would show the smallest, or all of them, one after the other.
    @Test func `are not passed on in several sizes at once`() throws {
        let rig = PassRig(.original)
        let frames = try Payloads.make(.vp9, 60)
        for (index, frame) in frames.enumerated() {
            rig.run(until: Int64(index) * 1_000 / 30 + 20)
            // The second of two sizes: layers are told, of which this is number 1.
            try rig.send([frame[0] | 0x20, 0x02, 0x00] + frame.dropFirst(), index, codec: .vp9)
            if index == 0 { try rig.send(frame, index, codec: .vp9) }
        }
        #expect(rig.beginnings.allSatisfy { $0.framesPerSecond == 30 })
    }

    @Test func `may become H.264, which is passed on, too`() throws {
        let rig = PassRig(.original)
        try rig.play(try SampleVideo.frames(.h264, width: 320, height: 180, count: 90, group: 40))
        #expect(rig.beginnings.map(\.framesPerSecond) == [nil])
        #expect(rig.beginnings.first?.codecs.hasPrefix("avc1.") == true)
    }

    /// What a rendition begins with decides whether it is offered: darkness for want of a picture would decide wrongly.
    @Test func `are waited for longer than what is encoded`() throws {
        let rig = PassRig(.original)
        rig.run(until: 3_000)
        #expect(rig.beginnings.isEmpty)
        let frames = try Payloads.make(.vp9, 60)
        for (index, frame) in frames.enumerated() {
            rig.run(until: Int64(90 + index) * 1_000 / 30 + 20)
            try rig.send(frame, 90 + index, codec: .vp9)
        }
        #expect(rig.beginnings.map(\.framesPerSecond) == [nil])
        let dark = PassRig(.original)
        dark.run(until: 4_000)
        #expect(dark.beginnings.map(\.framesPerSecond) == [30])
    }

    /// - Source: VP9 bitstream specification, Annex A.
    @Test(arguments: [
        (16, 16, 10), (320, 180, 20), (640, 360, 30), (854, 480, 31), (1_280, 720, 40), (1_920, 1_080, 41),
        (3_840, 2_160, 51), (7_680, 4_320, 61), (16_384, 8_704, 62), (0, -1, 10),
    ]) func `have a level that takes sixty pictures a second`(_ width: Int, _ height: Int, _ level: Int) {
        #expect(CodecName.vp9Level(of: VideoResolution(width: width, height: height)) == level)
    }

    /// - Source: ISO/IEC 14496-15 annex E.3.
    @Test(arguments: [
        ("01 60000000 900000000000 5d", "hvc1.1.6.L93.90"),
        ("22 20000000 b00000000000 99", "hvc1.2.4.H153.B0"),
        ("01 60000000 000000000000 1e", "hvc1.1.6.L30"),
        ("41 60000000 900003000000 5d", "hvc1.A1.6.L93.90.0.3"),
        ("04 08000000 9d0800000000 78", "hvc1.4.10.L120.9D.8"),
    ]) func `are named by profile, tier, level and constraints in HEVC`(_ fields: String, _ name: String) {
        // 320x180: a size of 10 and one of 9 bits, and no window.
        let set = hexBytes("00000001 4201 01") + hexBytes(fields) + hexBytes("a00a080b5658")
        var escaped: [UInt8] = Array(set.prefix(4))
        for byte in set.dropFirst(4) {
            if byte <= 3, escaped.suffix(2) == [0, 0], escaped.count > 6 { escaped.append(3) }
            escaped.append(byte)
        }
        let resolution = VideoResolution(width: 320, height: 180)
        #expect(
            CodecName.text(of: Muxer.Video(codec: .hevc, resolution: resolution, header: escaped)) == name)
    }

    @Test func `have a tier and a level of two digits`() {
        // Of 1920x1080 in 8 bits: level 4.0 of the high tier, and level 5.1 of the main one.
        let names = [(0x08, 1), (0x0D, 0)].map { level, tier in
            var bits = "000" + "0" + "0" + "0" + "0" + "00000" + String(repeating: "0", count: 12)
            bits += String(String(level + 32, radix: 2).dropFirst()) + String(tier)
            bits += "1010" + "1010" + String(String(1_919 + 2_048, radix: 2).dropFirst())
            bits +=
                String(String(1_079 + 2_048, radix: 2).dropFirst()) + "0" + "000" + "0000" + "0" + "0" + "0"
            bits += "000" + "0" + "0"
            while !bits.count.isMultiple(of: 8) { bits += "1" }
            let body = stride(from: 0, to: bits.count, by: 8).compactMap {
                UInt8(bits.dropFirst($0).prefix(8), radix: 2)
            }
            return CodecName.text(
                of: Muxer.Video(
                    codec: .av1, resolution: VideoResolution(width: 1_920, height: 1_080),
                    header: [0x0A, UInt8(body.count)] + body))
        }
        #expect(names == ["av01.0.08H.08", "av01.0.13M.08"])
    }
}
