import Wire

/// The names of codecs in playlists (the `CODECS` attribute).
enum CodecName {
    /// The name for a video track; a fallback of common values if the header cannot be parsed.
    /// - Source: RFC 6381 §3.3 (H.264); ISO/IEC 14496-15 annex E.3 (HEVC); VP Codec ISO Media File Format Binding and
    ///   AV1 Codec ISO Media File Format Binding, "Codecs Parameter String".
    static func text(of video: Muxer.Video) -> String {
        switch video.codec {
        case .av1:
            guard let sequence = sequence(of: video.header) else { return "av01.0.08M.08" }
            let level = digits(Int(sequence.level)) + (sequence.isHighTier ? "H" : "M")
            return "av01.\(sequence.profile).\(level)." + digits(sequence.samples?.bitDepth ?? 8)
        // Only profile 0 is passed on.
        case .vp9: return "vp09.00.\(digits(vp9Level(of: video.resolution))).08"
        case .hevc: return hevc(video.header)
        case .h264, .vp8: return h264(video.header)
        }
    }

    /// Parses the sequence header of AV1; nil if there is none.
    static func sequence(of header: [UInt8]) -> AV1SequenceHeader? {
        guard let units = try? AV1Units(parsing: header.span),
            let unit = units.all.first(where: { $0.kind == .sequenceHeader })
        else { return nil }
        return try? AV1SequenceHeader(parsing: unit.bytes.span)
    }

    /// Ten times the lowest level that permits 60 pictures per second of a size.
    ///
    /// Computed from the size because VP9 streams do not contain their level.
    /// - Source: VP9 bitstream specification, Annex A (luma samples of a picture, and of a second).
    static func vp9Level(of size: VideoResolution) -> Int {
        // Level, luma samples per picture, luma samples per second.
        let levels = [
            (10, 36_864, 829_440), (11, 73_728, 2_764_800), (20, 122_880, 4_608_000),
            (21, 245_760, 9_216_000), (30, 552_960, 20_736_000), (31, 983_040, 36_864_000),
            (40, 2_228_224, 83_558_400), (41, 2_228_224, 160_432_128), (50, 8_912_896, 311_951_360),
            (51, 8_912_896, 588_251_136), (52, 8_912_896, 1_176_502_272), (60, 35_651_584, 1_176_502_272),
            (61, 35_651_584, 2_353_004_544),
        ]
        let samples = min(max(size.width, 1), 1 << 16) * min(max(size.height, 1), 1 << 16)
        return levels.first { samples <= $0.1 && samples * 60 <= $0.2 }?.0 ?? 62
    }

    /// Parses the sequence parameter set of HEVC; nil if there is none.
    static func hevcSequence(of header: [UInt8]) -> HEVCSequenceParameters? {
        let unit = StreamHeader.units(of: header).first { header[$0.lowerBound] >> 1 & 0x3F == 33 }
        guard let unit, unit.count > 2 else { return nil }
        return try? HEVCSequenceParameters(parsing: header.span.extracting(unit.dropFirst(2)))
    }

    /// Profile, tier, level and constraints of the sequence parameter set, without trailing zeros.
    private static func hevc(_ header: [UInt8]) -> String {
        guard let sequence = hevcSequence(of: header) else { return "hvc1.1.6.L93.B0" }
        let space = ["", "A", "B", "C"][Int(sequence.profileSpace & 3)]
        // The name has the compatibility flags in reverse bit order, profile 31 first.
        let flags = (0..<32).reduce(UInt32(0)) { $0 << 1 | sequence.compatibility >> UInt32($1) & 1 }
        let end = (sequence.constraints.lastIndex { $0 != 0 } ?? -1) + 1
        let constraints = sequence.constraints[..<end].map { "." + String($0, radix: 16, uppercase: true) }
        return "hvc1.\(space)\(sequence.profile).\(String(flags, radix: 16, uppercase: true))"
            + ".\(sequence.isHighTier ? "H" : "L")\(sequence.level)" + constraints.joined()
    }

    /// Profile, constraints and level of the sequence parameter set, as six hexadecimal digits.
    private static func h264(_ header: [UInt8]) -> String {
        // Behind a whole start code: a picture parameter set may come first, and contain the same two bytes.
        let startCode: [UInt8] = [0, 0, 1]
        let start = header.indices.first { place in
            place >= 3 && header[place] & 0x1F == 7
                && header[(place - 3)..<place].elementsEqual(startCode)
        }
        guard let start, start + 3 < header.count else { return "avc1.42E01F" }
        let digits = header[(start + 1)...(start + 3)].map { byte in
            let text = String(byte, radix: 16, uppercase: true)
            return text.count == 1 ? "0" + text : text
        }
        return "avc1." + digits.joined()
    }

    /// At least two decimal digits.
    private static func digits(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
}
