import Foundation

/// Holds multivariant playlists to what RFC 8216bis §4.4.6.2 says of variants, and codecs to how they are written.
enum MultivariantConformance {
    /// - Source: RFC 6381 §3.3 (avc1, mp4a); the bindings of VP9 and AV1 to MP4, "Codecs Parameter String".
    private static let codecs = [
        "avc1\\.[0-9A-F]{6}", "vp09\\.0[0-3]\\.(1[01]|2[01]|3[01]|4[01]|5[0-2]|6[0-2])\\.(08|10|12)",
        "av01\\.[0-2]\\.([0-2][0-9]|3[01])[MH]\\.(08|10|12)", "mp4a\\.40\\.2",
    ]

    /// - Returns: what is wrong with it.
    static func check(_ text: String) -> [String] {
        var faults: [String] = []
        var lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        if lines.removeLast() != "" { faults.append("the last line has no end") }
        if lines.first != "#EXTM3U" { faults.append("#EXTM3U is not first") }
        var (variant, names): (String?, Set<String>) = (nil, [])
        for line in lines.dropFirst() {
            if line.hasPrefix("#EXT-X-STREAM-INF:") {
                if variant != nil { faults.append("a variant has no address") }
                variant = line
                faults += faultsOf(variant: line)
            } else if line.hasPrefix("#") {
                if !["#EXT-X-VERSION:9", "#EXT-X-INDEPENDENT-SEGMENTS"].contains(line) {
                    faults.append("unknown: \(line)")
                }
            } else {
                if variant == nil { faults.append("\(line) is no variant's") }
                if !names.insert(line).inserted { faults.append("\(line) comes twice") }
                variant = nil
            }
        }
        if names.isEmpty || variant != nil { faults.append("a variant is missing") }
        return faults
    }

    private static func faultsOf(variant line: String) -> [String] {
        var faults: [String] = []
        func value(_ pattern: String) -> Substring? {
            guard let regex = try? Regex<(Substring, Substring)>("[:,]" + pattern + "(?=,|$)") else {
                return nil
            }
            return line.firstMatch(of: regex)?.output.1
        }
        let (peak, average) = (value("BANDWIDTH=(\\d+)"), value("AVERAGE-BANDWIDTH=(\\d+)"))
        if peak == nil { faults.append("no bandwidth: \(line)") }
        if let peak = peak.flatMap({ Int($0) }), let average = average.flatMap({ Int($0) }), average > peak {
            faults.append("more on average than at most: \(line)")
        }
        let written = value("CODECS=\"([^\"]+)\"")?.split(separator: ",") ?? []
        if written.isEmpty { faults.append("no codecs: \(line)") }
        for codec in written where !codecs.contains(where: { isWhole(codec, $0) }) {
            faults.append("no codec is written \(codec)")
        }
        let hasPictures = written.contains { !$0.hasPrefix("mp4a") }
        if hasPictures != (value("RESOLUTION=(\\d+x\\d+)") != nil) {
            faults.append("no size, or one of sound: \(line)")
        }
        return faults
    }

    private static func isWhole(_ text: Substring, _ pattern: String) -> Bool {
        (try? Regex(pattern)).map { text.wholeMatch(of: $0) != nil } ?? false
    }
}
