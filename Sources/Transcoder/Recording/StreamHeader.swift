import Wire

/// Extracts from key frames what containers store outside of frames.
enum StreamHeader {
    /// The parameter sets or the sequence header of a key frame; empty for codecs without them.
    /// - Parameter frame: in the format of decoders.
    static func header(_ codec: VideoCodec, of frame: [UInt8]) -> [UInt8] {
        switch codec {
        case .vp8, .vp9: []
        case .h264: parameterSets(of: frame) { [7, 8].contains($0 & 0x1F) }
        case .hevc: parameterSets(of: frame, isHEVCParameterSet)
        case .av1: sequenceHeader(of: frame)
        }
    }

    /// Most parameter sets, and most bytes of them: more than encoders use, but no file with more would be playable.
    static let setLimit = 64
    static let byteLimit = 4_096

    /// The parameter sets that apply to a key frame of H.264; empty if they are not known.
    ///
    /// Encoders may send them once only, or the sequence parameter set once and then picture parameter sets alone:
    /// those of earlier key frames still apply, except where one with the same ID replaces them.
    /// - Parameters:
    ///   - frame: in the format of decoders.
    ///   - known: what this function returned for the key frame before; empty for the first one.
    /// - Source: ITU-T H.264 §7.4.1.2.1 (activation of parameter sets).
    static func parameterSets(of frame: [UInt8], after known: [UInt8]) -> [UInt8] {
        let sets = header(.h264, of: frame)
        let found = units(of: sets).map { Array(sets[$0]) }
        guard !found.contains(where: { $0[0] & 0x1F == 7 }) else { return sets }
        // Without a sequence parameter set nothing can be decoded.
        guard !known.isEmpty else { return [] }
        var all = units(of: known).map { Array(known[$0]) }
        for unit in found {
            let place = all.firstIndex { $0[0] & 0x1F == 8 && pictureSetID($0) == pictureSetID(unit) }
            if let place { all[place] = unit } else { all.append(unit) }
        }
        let merged: [UInt8] = all.flatMap { [0, 0, 0, 1] + $0 }
        return all.count <= setLimit && merged.count <= byteLimit ? merged : known
    }

    /// The code of a picture parameter set's ID, which is its first field; nil for more than 255.
    /// - Source: ITU-T H.264 §7.3.2.2 (syntax), §9.1 (codes).
    private static func pictureSetID(_ unit: [UInt8]) -> UInt32? {
        var code: UInt32 = 0
        for place in 1...4 { code = code << 8 | (place < unit.count ? UInt32(unit[place]) : 0) }
        // As many bits follow the first one that is set as zeros precede it.
        let zeros = code.leadingZeroBitCount
        return zeros <= 8 ? code >> UInt32(31 - 2 * zeros) : nil
    }

    /// Whether an HEVC unit is a parameter set (video, sequence or picture).
    /// - Parameter first: its first byte.
    /// - Source: ITU-T H.265 table 7-1 (types 32 to 34).
    private static func isHEVCParameterSet(_ first: UInt8) -> Bool { 32...34 ~= first >> 1 & 0x3F }

    /// An HEVC frame without its parameter sets, which `hvc1` requires to be outside of frames.
    /// - Source: ISO/IEC 14496-15 §8.4.1 (hvc1).
    static func withoutParameterSets(_ frame: [UInt8]) -> [UInt8] {
        var rest: [UInt8] = []
        for range in units(of: frame) where !isHEVCParameterSet(frame[range.lowerBound]) {
            rest += [0, 0, 0, 1]
            rest += frame[range]
        }
        return rest
    }

    /// The ranges of units after start codes of four bytes, without empty ones.
    static func units(of frame: [UInt8]) -> [Range<Int>] {
        var starts: [Int] = []
        var index = 0
        while index + 3 < frame.count {
            if frame[index] == 0, frame[index + 1] == 0, frame[index + 2] == 0, frame[index + 3] == 1 {
                starts.append(index + 4)
                index += 4
            } else {
                index += 1
            }
        }
        return starts.enumerated().compactMap { place, start in
            let end = place + 1 < starts.count ? starts[place + 1] - 4 : frame.count
            return start < end ? start..<end : nil
        }
    }

    /// The parameter sets of a frame, without duplicates, with start codes.
    /// - Parameter isOne: whether a unit is a parameter set, by its first byte.
    /// - Source: ITU-T H.264 §7.4.1 (types 7 and 8), Annex B.
    private static func parameterSets(of frame: [UInt8], _ isOne: (UInt8) -> Bool) -> [UInt8] {
        var seen: Set<[UInt8]> = []
        var header: [UInt8] = []
        for range in units(of: frame) where isOne(frame[range.lowerBound]) {
            guard header.count + 4 + range.count <= byteLimit, seen.count < setLimit else { break }
            let unit = Array(frame[range])
            if seen.insert(unit).inserted { header += [0, 0, 0, 1] + unit }
        }
        return header
    }

    /// The sequence header with its size; empty if there is none.
    /// - Source: AV1 bitstream specification §5.3 (units), §6.2.2 (type 1).
    private static func sequenceHeader(of frame: [UInt8]) -> [UInt8] {
        var place = 0
        while place < frame.count {
            let start = place
            let header = frame[place]
            // Units without a size cannot be skipped.
            guard header & 0x02 != 0 else { return [] }
            place += header & 0x04 != 0 ? 2 : 1
            var size = 0
            var shift = 0
            while place < frame.count, shift < 35 {
                let byte = frame[place]
                size |= Int(byte & 0x7F) << shift
                shift += 7
                place += 1
                if byte & 0x80 == 0 { break }
            }
            guard size <= frame.count - place else { return [] }
            place += size
            if header >> 3 & 0x0F == 1 { return Array(frame[start..<place]) }
        }
        return []
    }
}
