import Base

/// What a caller by SRT says it wants: a stream, to publish to it, and a key.
///
/// Three ways to say it are known: SRT's own, `#!::r=live/NAME,m=publish,s=KEY`; `publish:NAME:KEY`; and
/// `NAME?token=KEY`, which is RTMP's. It comes from strangers: up to 512 bytes of anything.
/// - Source: SRT Access Control Guidelines (libsrt 1.5, `docs/features/access-control.md`).
package struct SRTStreamID: Sendable {
    /// What is wrong with one.
    package enum Fault: Error, Equatable, Sendable {
        /// It is none of the three.
        case malformed
        /// It wants to watch, or something else that is not publishing.
        case notPublishing
        /// It names no stream.
        case unnamed
        case keyless
    }

    /// As RTMP has it: the stream's name, and behind it who publishes.
    package let field: Secret<String>

    /// In bytes, as the protocol has it.
    package static let limit = 512

    package init(parsing text: String) throws(Fault) {
        // What is printed nowhere has no business in a name or a key.
        guard !text.isEmpty, text.utf8.count <= Self.limit, text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F })
        else { throw .malformed }
        if text.hasPrefix("#!::") {
            try self.init(properties: text.dropFirst(4))
        } else if text.hasPrefix("#!") {
            throw .malformed
        } else if text.contains("?") {
            try self.init(query: text)
        } else {
            try self.init(colons: text)
        }
    }

    private init(name: some StringProtocol, key: some StringProtocol) throws(Fault) {
        let bare = name.hasPrefix("live/") ? name.dropFirst("live/".count) : name[...]
        guard !bare.isEmpty else { throw .unnamed }
        guard !key.isEmpty else { throw .keyless }
        // Neither may say what the other one says.
        guard !bare.contains(where: { ":?&/".contains($0) }), !key.contains(where: { "?&".contains($0) })
        else {
            throw .malformed
        }
        field = Secret("\(bare)?token=\(key)")
    }

    private init(properties text: Substring) throws(Fault) {
        var values: [Substring: Substring] = [:]
        for property in text.split(separator: ",") {
            let parts = property.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2, values.updateValue(parts[1], forKey: parts[0]) == nil else {
                throw .malformed
            }
        }
        guard values["t"] ?? "stream" == "stream" else { throw .malformed }
        // Without it, a caller asks for what there is to be had.
        guard values["m"] == "publish" else { throw .notPublishing }
        guard let resource = values["r"] else { throw .unnamed }
        guard !resource.contains("?") else {
            try self.init(query: String(resource))
            return
        }
        guard let key = values["s"] else { throw .keyless }
        try self.init(name: resource, key: key)
    }

    private init(query text: String) throws(Fault) {
        let parts = text.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2 else { throw .malformed }
        var name = parts[0]
        if name.hasPrefix("publish:") { name = name.dropFirst("publish:".count) }
        let keys = parts[1].split(separator: "&").compactMap { part in
            ["token=", "key="].first { part.hasPrefix($0) }.map { part.dropFirst($0.count) }
        }
        guard keys.count <= 1 else { throw .malformed }
        guard let key = keys.first else { throw .keyless }
        try self.init(name: name, key: key)
    }

    private init(colons text: String) throws(Fault) {
        let parts = text.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.first == "publish" else {
            throw ["read", "request", "play"].contains(parts.first) ? .notPublishing : .keyless
        }
        guard parts.count > 1 else { throw .unnamed }
        guard parts.count == 3 else { throw .keyless }
        try self.init(name: parts[1], key: parts[2])
    }
}

extension SRTStreamID.Fault {
    /// For whoever set up the encoder.
    package var text: String {
        switch self {
        case .malformed: "The streamid has to be publish:NAME:KEY, as the studio shows it."
        case .notPublishing: "Nothing is played by SRT here: watch in a browser, or by WHEP."
        case .unnamed: "The streamid names no stream: it has to be publish:NAME:KEY."
        case .keyless: "The streamid lacks the key: it has to be publish:NAME:KEY, as the studio shows it."
        }
    }
}
