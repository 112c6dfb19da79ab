/// Holds media playlists to what RFC 8216bis says of them, one by one and each against the one before.
struct PlaylistConformance {
    private struct Entry: Equatable {
        var uri: String
        var milliseconds: Int
        var isDiscontinuous: Bool
        var map: String
        var range = ""
    }

    private struct Reading {
        var mediaSequence = 0
        var discontinuitySequence = 0
        var target = 0
        var partTarget = 0
        var skipped = 0
        var segments: [Entry] = []
        /// Whether the segment under way, which is no entry yet, is discontinuous.
        var endsDiscontinuous = false
        var parts: [String] = []
        var hasEnded = false
        var isRecorded = false
    }

    private var last: Reading?

    /// - Returns: what is wrong with the next playlist of a run.
    mutating func check(_ text: String) -> [String] {
        var faults: [String] = []
        let reading = Self.read(text, &faults)
        if let last { compare(reading, with: last, &faults) }
        if reading.skipped == 0 { last = reading }
        return faults
    }

    private static func read(_ text: String, _ faults: inout [String]) -> Reading {
        var reading = Reading()
        var lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        if lines.removeLast() != "" { faults.append("the last line has no end") }
        if lines.first != "#EXTM3U" { faults.append("#EXTM3U is not first") }
        var (duration, isDiscontinuous, map, sum, isIndependent) = (-1, false, "", 0, false)
        var (hasHint, range) = (false, "")
        for line in lines.dropFirst() {
            let (tag, value) = split(line)
            if hasHint, tag != "#EXT-X-RENDITION-REPORT" { faults.append("\(line) comes after the hint") }
            switch tag {
            case "#EXT-X-RENDITION-REPORT":
                let numbers = ["LAST-MSN", "LAST-PART"].map { Int(attribute($0, value)) ?? -1 }
                if attribute("URI", value).isEmpty || numbers.contains(where: { $0 < 0 }) {
                    faults.append("a report says nothing: \(line)")
                }
            case "#EXT-X-VERSION":
                if value != "9" { faults.append("skipping takes version 9") }
            case "#EXT-X-TARGETDURATION": reading.target = (Int(value) ?? 0) * 1_000
            case "#EXT-X-PART-INF": reading.partTarget = milliseconds(attribute("PART-TARGET", value))
            case "#EXT-X-SERVER-CONTROL":
                if !value.contains("CAN-BLOCK-RELOAD=YES") { faults.append("does not block") }
                if milliseconds(attribute("PART-HOLD-BACK", value)) < 1_000 {
                    faults.append("holds too little back")
                }
                if milliseconds(attribute("CAN-SKIP-UNTIL", value)) < 6 * reading.target {
                    faults.append("skips too much")
                }
            case "#EXT-X-MEDIA-SEQUENCE": reading.mediaSequence = Int(value) ?? -1
            case "#EXT-X-DISCONTINUITY-SEQUENCE": reading.discontinuitySequence = Int(value) ?? -1
            case "#EXT-X-SKIP": reading.skipped = Int(attribute("SKIPPED-SEGMENTS", value)) ?? 0
            case "#EXT-X-DISCONTINUITY": isDiscontinuous = true
            case "#EXT-X-PLAYLIST-TYPE":
                reading.isRecorded = value == "VOD"
                if !reading.isRecorded { faults.append("what is live is of no type") }
            case "#EXT-X-INDEPENDENT-SEGMENTS": break
            case "#EXT-X-MAP":
                map = attribute("URI", value)
                if let fault = fault(ofRange: attribute("BYTERANGE", value), reading) { faults.append(fault) }
            case "#EXT-X-BYTERANGE": range = value
            case "#EXT-X-PROGRAM-DATE-TIME":
                if !value.hasSuffix("Z") || value.count != 24 { faults.append("no date: \(value)") }
            case "#EXT-X-PART":
                let length = milliseconds(attribute("DURATION", value))
                if length > reading.partTarget { faults.append("a part is longer than its target") }
                if sum == 0 { isIndependent = value.contains("INDEPENDENT=YES") }
                if sum == 0, !isIndependent { faults.append("a segment begins without a key frame") }
                sum += length
                reading.parts.append(attribute("URI", value))
            case "#EXTINF":
                duration = milliseconds(value.replacing(",", with: ""))
                if duration > reading.target { faults.append("a segment is longer than the target") }
                if sum > 0, sum != duration { faults.append("parts do not add up to \(duration)") }
            case "#EXT-X-PRELOAD-HINT":
                hasHint = true
                if reading.parts.contains(attribute("URI", value)) {
                    faults.append("what is there is hinted")
                }
            case "#EXT-X-ENDLIST": reading.hasEnded = true
            default:
                if line.hasPrefix("#") { faults.append("unknown: \(line)") }
                if duration < 0 { faults.append("\(line) has no duration") }
                if map.isEmpty { faults.append("\(line) has no initialization segment") }
                if let fault = fault(ofRange: range, reading) { faults.append(fault) }
                reading.segments.append(
                    Entry(
                        uri: line, milliseconds: duration, isDiscontinuous: isDiscontinuous, map: map,
                        range: range))
                (duration, isDiscontinuous, sum, range) = (-1, false, 0, "")
            }
        }
        reading.endsDiscontinuous = isDiscontinuous
        if reading.hasEnded == hasHint { faults.append("either it ends or something is hinted") }
        if reading.isRecorded, !reading.hasEnded { faults.append("a recording goes on") }
        return reading
    }

    /// Live segments are files; those of a recording lie in one, behind those before (§4.4.4.2).
    private static func fault(ofRange range: String, _ reading: Reading) -> String? {
        guard reading.isRecorded else { return range.isEmpty ? nil : "a range of what is live" }
        let numbers = range.split(separator: "@").map { Int($0) ?? -1 }
        guard numbers.count == 2, numbers[0] > 0, numbers[1] >= 0 else { return "no range: \(range)" }
        return nil
    }

    private func compare(_ new: Reading, with old: Reading, _ faults: inout [String]) {
        if (new.target, new.partTarget) != (old.target, old.partTarget) { faults.append("targets changed") }
        if old.hasEnded, new.segments != old.segments { faults.append("it went on after its end") }
        let gone = new.mediaSequence - old.mediaSequence
        guard gone >= 0 else { return faults.append("the media sequence went back") }
        let removed = old.segments.prefix(gone)
        // The tag before the first segment that is left counts once that segment is gone.
        let isLastLost = gone > old.segments.count && old.endsDiscontinuous
        let lost = removed.filter(\.isDiscontinuous).count + (isLastLost ? 1 : 0)
        if new.discontinuitySequence - old.discontinuitySequence != lost {
            faults.append("discontinuities are not counted")
        }
        let kept = Array(old.segments.dropFirst(gone + new.skipped))
        if Array(new.segments.prefix(kept.count)) != kept { faults.append("what was said before changed") }
    }

    private static func split(_ line: String) -> (tag: String, value: String) {
        let parts = line.split(separator: ":", maxSplits: 1).map(String.init)
        return (parts.first ?? "", parts.count == 2 ? parts[1] : "")
    }

    private static func attribute(_ name: String, _ list: String) -> String {
        for part in list.split(separator: ",") where part.hasPrefix("\(name)=") {
            return String(part.dropFirst(name.count + 1).filter { $0 != "\"" })
        }
        return ""
    }

    private static func milliseconds(_ seconds: String) -> Int {
        Int(((Double(seconds) ?? -1) * 1_000).rounded())
    }
}
