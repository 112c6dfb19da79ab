/// The name of a file that playlists refer to, relative to them.
package enum MediaFileName: Equatable, Sendable {
    /// What a player needs before the segments, by its number.
    case initialization(Int)
    /// A segment, by its number.
    case segment(Int)
    /// Number of the segment, and index of the part in it.
    case part(Int, Int)

    /// In bytes; `text` makes no longer names.
    private static let lengthLimit = 64

    /// The name with a packaging's tag.
    package func text(_ tag: String) -> String {
        switch self {
        case .initialization(let number): "\(tag)-i\(number).mp4"
        case .segment(let number): "\(tag)-s\(number).m4s"
        case .part(let number, let index): "\(tag)-p\(number)-\(index).m4s"
        }
    }

    /// Parses a name.
    /// - Returns: nil for a name that `text` would not make with this tag.
    package init?(_ name: String, tag: String) {
        guard name.utf8.count <= Self.lengthLimit, name.hasPrefix(tag) else { return nil }
        let parts = name.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 2 else { return nil }
        let fields = parts[0].split(separator: "-", omittingEmptySubsequences: false)
        guard fields.count >= 2, fields[0] == tag, let number = PlaylistQuery.number(fields[1].dropFirst())
        else { return nil }
        switch (fields[1].first, fields.count, parts[1]) {
        case ("i", 2, "mp4"): self = .initialization(number)
        case ("s", 2, "m4s"): self = .segment(number)
        case ("p", 3, "m4s"):
            guard let index = PlaylistQuery.number(fields[2]) else { return nil }
            self = .part(number, index)
        default: return nil
        }
        // Each file has one name: numbers with leading zeros are none.
        guard text(tag) == name else { return nil }
    }
}
