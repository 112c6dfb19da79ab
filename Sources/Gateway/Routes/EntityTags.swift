import Base
import HTTP

/// The name of one state of a resource, as `ETag` has it.
/// - Source: RFC 9110 §8.8.3.
struct EntityTag: Equatable, CustomStringConvertible {
    /// Without quotes, which it may not hold.
    let value: String
    /// Whether it may also name what is only as good as the same.
    var isWeak = false

    /// With quotes.
    var description: String { isWeak ? "W/\"\(value)\"" : "\"\(value)\"" }
}

/// What `If-Match` and `If-None-Match` hold: `*`, or a list of entity tags.
/// - Source: RFC 9110 §13.1.1, §13.1.2.
enum EntityTags: Equatable {
    case any
    case list([EntityTag])

    /// - Returns: nil for a field that is neither.
    init?(_ field: String) {
        guard field.trimmed != "*" else {
            self = .any
            return
        }
        var tags: [EntityTag] = []
        var rest = field.utf8[...]
        while true {
            rest = rest.drop { $0 == 0x20 || $0 == 0x09 || $0 == UInt8(ascii: ",") }
            guard !rest.isEmpty else { break }
            let isWeak = rest.starts(with: "W/".utf8)
            if isWeak { rest.removeFirst(2) }
            guard rest.popFirst() == UInt8(ascii: "\""), let end = rest.firstIndex(of: UInt8(ascii: "\""))
            else { return nil }
            tags.append(EntityTag(value: String(decoding: rest[..<end], as: UTF8.self), isWeak: isWeak))
            rest = rest[rest.index(after: end)...]
        }
        self = .list(tags)
    }

    /// Whether this very state is named, as `If-Match` wants it: a weak tag never is.
    /// - Source: RFC 9110 §8.8.3.2 (strong comparison).
    func haveExactly(_ tag: EntityTag) -> Bool {
        switch self {
        case .any: true
        case .list(let tags): !tag.isWeak && tags.contains(tag)
        }
    }

    /// Whether something as good is named, as `If-None-Match` wants it.
    /// - Source: RFC 9110 §8.8.3.2 (weak comparison).
    func have(_ tag: EntityTag) -> Bool {
        switch self {
        case .any: true
        case .list(let tags): tags.contains { $0.value == tag.value }
        }
    }
}

extension HTTPRequest {
    /// Whether the client has a representation already; a malformed `If-None-Match` says that it does not.
    /// - Parameters:
    ///   - tag: the representation's.
    ///   - changed: when it became what it is, for clients that keep no tags; nil where that is not known.
    /// - Source: RFC 9110 §13.1.2, §13.1.3, §13.2.2 (the tag wins).
    func has(_ tag: EntityTag, changed: WallTime? = nil) -> Bool {
        if let field = headers["if-none-match"] { return EntityTags(field)?.have(tag) ?? false }
        guard let changed, let since = headers["if-modified-since"].flatMap({ HTTPDate.seconds($0) }) else {
            return false
        }
        return changed.milliseconds / 1_000 <= since
    }
}

extension HTTPResponse {
    /// A representation with its tag; 304 without it where the client has it already.
    /// - Parameters:
    ///   - headers: what is said of it in both cases.
    ///   - changed: as `HTTPRequest.has(_:changed:)` takes it.
    ///   - body: made only where it is sent.
    init(
        to request: HTTPRequest, tag: EntityTag, changed: WallTime? = nil, headers: HTTPHeaders,
        type: String, body: @autoclosure () -> [UInt8]
    ) {
        self.init(status: 200, headers: headers)
        self.headers.add("ETag", tag.description)
        guard !request.has(tag, changed: changed) else {
            status = 304
            return
        }
        self.headers.add("Content-Type", type)
        self.body = body()
    }
}
