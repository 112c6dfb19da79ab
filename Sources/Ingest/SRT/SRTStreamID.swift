import Base

/// The stream ID of an SRT caller: which stream it publishes to, and with which key.
///
/// Three forms are accepted: SRT's own, `#!::r=live/NAME,m=publish,s=KEY`; `publish:NAME:KEY`; and `NAME?token=KEY`,
/// as in RTMP. The input is hostile: up to 512 arbitrary bytes.
/// - Source: SRT Access Control Guidelines (libsrt 1.5, `docs/features/access-control.md`).
package struct SRTStreamID: Sendable {
    /// Why a stream ID is refused.
    package enum Fault: Error, Equatable, Sendable {
        /// The text has none of the three forms.
        case malformed
        /// The caller requests to play, or anything else but publishing.
        case notPublishing
        /// The stream's name is missing.
        case unnamed
        /// The key is missing.
        case keyless
    }

    /// The stream's name and the key as RTMP clients send them: `NAME?token=KEY`.
    package let field: Secret<String>

    /// Longest stream ID of the protocol, in bytes.
    package static let limit = 512

    /// Parses a stream ID.
    package init(parsing text: String) throws(Fault) {
        // Only printable ASCII without spaces, as for names and keys.
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

    /// Combines name and key into `field`.
    private init(name: some StringProtocol, key: some StringProtocol) throws(Fault) {
        let bare = name.hasPrefix("live/") ? name.dropFirst("live/".count) : name[...]
        guard !bare.isEmpty else { throw .unnamed }
        guard !key.isEmpty else { throw .keyless }
        // A separator inside either part would change the meaning of the combined text.
        guard !bare.contains(where: { ":?&/".contains($0) }), !key.contains(where: { "?&".contains($0) })
        else {
            throw .malformed
        }
        field = Secret("\(bare)?token=\(key)")
    }

    /// Parses SRT's own form: properties separated by commas, each at most once.
    private init(properties text: Substring) throws(Fault) {
        var values: [Substring: Substring] = [:]
        for property in text.split(separator: ",") {
            let parts = property.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2, values.updateValue(parts[1], forKey: parts[0]) == nil else {
                throw .malformed
            }
        }
        guard values["t"] ?? "stream" == "stream" else { throw .malformed }
        // The default mode is `request`, which is playing.
        guard values["m"] == "publish" else { throw .notPublishing }
        guard let resource = values["r"] else { throw .unnamed }
        guard !resource.contains("?") else {
            try self.init(query: String(resource))
            return
        }
        guard let key = values["s"] else { throw .keyless }
        try self.init(name: resource, key: key)
    }

    /// Parses the RTMP form; `token` and `key` are synonyms, and other parameters are ignored.
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

    /// Parses `publish:NAME:KEY`; the key may contain colons.
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
    /// Explanation for the person who set up the encoder.
    package var text: String {
        switch self {
        case .malformed: "The streamid must be publish:NAME:KEY. Copy it from the studio."
        case .notPublishing: "Streams can't be played over SRT. Watch in a browser or by WHEP."
        case .unnamed: "The streamid is missing the stream's name. It must be publish:NAME:KEY."
        case .keyless: "The streamid is missing the key. Copy publish:NAME:KEY from the studio."
        }
    }
}
