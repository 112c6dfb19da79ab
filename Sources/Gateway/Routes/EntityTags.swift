import Base
import HTTP

/// An entity tag: identifies one state of a resource.
/// - Source: RFC 9110 §8.8.3.
package struct EntityTag: Equatable, Sendable, CustomStringConvertible {
    /// The opaque text, without the quotes, which it must not contain.
    package let value: String
    /// Whether it may also identify states that are equivalent but not identical.
    package var isWeak = false

    /// The form in header fields, with quotes.
    package var description: String { isWeak ? "W/\"\(value)\"" : "\"\(value)\"" }
}

/// The value of `If-Match` or `If-None-Match`: `*`, or a list of entity tags.
/// - Source: RFC 9110 §13.1.1, §13.1.2.
package enum EntityTags: Equatable, Sendable {
    /// `*`: any state of an existing resource.
    case any
    case list([EntityTag])

    /// Parses a field; nil if it is malformed.
    package init?(_ field: String) {
        guard field.trimmed != "*" else {
            self = .any
            return
        }
        var tags: [EntityTag] = []
        var rest = field.utf8[...]
        while true {
            // Empty list elements are allowed (RFC 9110 §5.6.1.2).
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

    /// Whether the list contains this exact state, as `If-Match` requires; never true for a weak tag.
    /// - Source: RFC 9110 §8.8.3.2 (strong comparison).
    package func haveExactly(_ tag: EntityTag) -> Bool {
        switch self {
        case .any: true
        case .list(let tags): !tag.isWeak && tags.contains(tag)
        }
    }

    /// Whether the list contains an equivalent state, as `If-None-Match` requires.
    /// - Source: RFC 9110 §8.8.3.2 (weak comparison).
    package func have(_ tag: EntityTag) -> Bool {
        switch self {
        case .any: true
        case .list(let tags): tags.contains { $0.value == tag.value }
        }
    }
}

extension HTTPRequest {
    /// Whether the client has a representation already, so that a 304 suffices; false if `If-None-Match` is
    /// malformed.
    /// - Parameters:
    ///   - tag: of the representation.
    ///   - changed: when it was modified, for clients that keep no tags; nil if unknown.
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
    /// A response with a representation and its tag, or a 304 without the representation if the client has it
    /// already.
    /// - Parameters:
    ///   - headers: fields of both responses; a 304 repeats those that caches need (RFC 9110 §15.4.5).
    ///   - changed: as for `HTTPRequest.has(_:changed:)`.
    ///   - type: media type, sent with the body only.
    ///   - body: evaluated only if it is sent.
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
