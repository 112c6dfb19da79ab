import HTTP

/// The `If-Match` field.
/// - Source: RFC 9110 §13.1.1, §8.8.3.
enum IfMatch: Equatable {
    case any
    case tags([String])

    /// - Returns: nil for a value that is neither `*` nor a list of entity tags.
    init?(_ text: String) {
        guard let list = EntityTagList(text) else { return nil }
        // A weak tag never matches here: the comparison is the strong one.
        self = list.isAny ? .any : .tags(list.tags.filter { !$0.isWeak }.map(\.text))
    }

    func matches(_ tag: String) -> Bool {
        switch self {
        case .any: true
        case .tags(let tags): tags.contains(tag)
        }
    }
}

/// The `If-None-Match` field, by weak comparison; one that is malformed matches nothing.
/// - Source: RFC 9110 §13.1.2.
struct IfNoneMatch {
    private let list: EntityTagList?

    init(_ text: String) {
        list = EntityTagList(text)
    }

    func matches(_ tag: String) -> Bool {
        guard let list else { return false }
        return list.isAny || list.tags.contains { $0.text == tag }
    }
}

/// `*` or a list of entity tags.
private struct EntityTagList {
    var isAny = false
    var tags: [(text: String, isWeak: Bool)] = []

    /// - Returns: nil for a value that is neither.
    init?(_ text: String) {
        if text.trimmed == "*" {
            isAny = true
            return
        }
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
            tags.append((tag, isWeak))
            rest = rest[rest.index(after: end)...]
        }
    }
}
