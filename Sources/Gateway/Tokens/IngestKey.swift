import Base
import Node
import Stage

/// What an encoder shows that knows no headers: a stream's name, and behind it who publishes.
///
/// `NAME?token=…`, as every encoder has one field for. A key that was made as such is a JWT with `"use":"ingest"`: it
/// is good for one stream and for nothing else, so that a screen that shows an encoder's settings gives no studio
/// away. A host's or speaker's own token will do, too.
package struct IngestKey: Equatable, Sendable {
    /// The claim `use`.
    static let use = "ingest"
    /// How long one lasts, in seconds, unless what it was made of ends before: thirty days.
    static let lifetime = 2_592_000

    /// Whoever publishes by it.
    package let token: Token
    /// `iat`, in seconds since 1970; nil for a token.
    ///
    /// A host revokes what was issued until a moment.
    package let issued: Int?

    /// What stands in an encoder's field for the key.
    static func field(_ stream: StreamID, _ key: Secret<String>) -> String {
        "\(stream)?token=\(key.exposed)"
    }

    /// The same for SRT; nil for one that is longer than SRT takes, which is that of somebody with a long name.
    static func streamID(_ stream: StreamID, _ key: Secret<String>) -> String? {
        let text = "publish:\(stream):\(key.exposed)"
        return text.utf8.count <= 512 ? text : nil
    }
}

extension TokenAuthority {
    /// Reads what an encoder has in its field for the key.
    /// - Parameter now: seconds since 1970.
    package func authorize(
        _ field: Secret<String>, now: Int
    ) throws(IngestSettings.Refusal) -> IngestSettings.Grant {
        let parts = field.exposed.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        guard let stream = parts.first.flatMap({ StreamID(String($0)) }) else {
            throw IngestSettings.Refusal("The stream key has to be NAME?token=…, as the studio shows it.")
        }
        let parameters = parts.count > 1 ? parts[1].split(separator: "&") : []
        guard let text = parameters.first(where: { $0.hasPrefix("token=") })?.dropFirst("token=".count) else {
            throw IngestSettings.Refusal("The stream key lacks ?token=…: copy it from the studio.")
        }
        let key: IngestKey
        do throws(TokenRefusal) {
            key = try verifyIngestKey(String(text), now: now)
        } catch {
            throw IngestSettings.Refusal(error.description)
        }
        guard key.token.mayPublish(to: stream) else {
            throw IngestSettings.Refusal("This key does not allow publishing to this stream.")
        }
        return IngestSettings.Grant(
            stream: stream, sender: key.token.sender, keyIssued: key.issued)
    }
}
