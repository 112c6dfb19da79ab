/// The `If-Match` field.
/// - Source: RFC 9110 §13.1.1, §8.8.3.
enum IfMatch: Equatable {
    case any
    case tags([String])

    /// - Returns: nil for a value that is neither `*` nor a list of entity tags.
    init?(_ text: String) {
        if text.trimmed == "*" {
            self = .any
            return
        }
        var tags: [String] = []
        var rest = text.utf8[...]
        while true {
            while let byte = rest.first, byte == 0x20 || byte == 0x09 || byte == UInt8(ascii: ",") {
                rest.removeFirst()
            }
            guard !rest.isEmpty else { break }
            let isWeak = rest.starts(with: "W/".utf8)
            if isWeak { rest.removeFirst(2) }
            guard rest.first == UInt8(ascii: "\""),
                let end = rest.dropFirst().firstIndex(of: UInt8(ascii: "\""))
            else { return nil }
            let tag = String(decoding: rest[rest.index(after: rest.startIndex)..<end], as: UTF8.self)
            // A weak tag never matches here: the comparison is the strong one.
            if !isWeak { tags.append(tag) }
            rest = rest[rest.index(after: end)...]
        }
        self = .tags(tags)
    }

    func matches(_ tag: String) -> Bool {
        switch self {
        case .any: true
        case .tags(let tags): tags.contains(tag)
        }
    }
}

extension StringProtocol {
    /// Without blanks and tabs at both ends (OWS of RFC 9110 §5.6.3).
    var trimmed: String {
        var text = Substring(self)
        while text.first == " " || text.first == "\t" { text.removeFirst() }
        while text.last == " " || text.last == "\t" { text.removeLast() }
        return String(text)
    }
}
