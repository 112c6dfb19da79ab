import Base
import Node
import Stage

/// The stream key of an encoder, which cannot send HTTP header fields: the stream's name and a token.
///
/// `NAME?token=…` fits the one field for a key that every encoder has. A key issued as such is a JWT with
/// `"use":"ingest"`: it is good for publishing to one stream and nothing else, so a screen that shows an encoder's
/// settings does not give access to the studio. A host's or speaker's own token is accepted as well.
package struct IngestKey: Equatable, Sendable {
    /// Value of the claim `use`.
    static let use = "ingest"
    /// Lifetime in seconds, unless the token that it was issued for ends earlier: thirty days.
    static let lifetime = 2_592_000

    /// The identity that publishes with the key.
    package let token: Token
    /// The claim `iat`, in seconds since 1970; nil if an ordinary token was shown.
    ///
    /// A host revokes all keys issued up to a moment.
    package let issued: Int?

    /// The text for an encoder's key field.
    static func field(_ stream: StreamID, _ key: Secret<String>) -> String {
        "\(stream)?token=\(key.exposed)"
    }

    /// The stream ID for SRT; nil if it exceeds SRT's limit of 512 bytes, as with a long name.
    static func streamID(_ stream: StreamID, _ key: Secret<String>) -> String? {
        let text = "publish:\(stream):\(key.exposed)"
        return text.utf8.count <= 512 ? text : nil
    }
}

extension TokenAuthority {
    /// Verifies the text of an encoder's key field.
    /// - Parameter now: seconds since 1970.
    /// - Throws: a sentence for the person who set up the encoder.
    package func authorize(
        _ field: Secret<String>, now: Int
    ) throws(IngestSettings.Refusal) -> IngestSettings.Grant {
        let parts = field.exposed.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        guard let stream = parts.first.flatMap({ StreamID(String($0)) }) else {
            throw IngestSettings.Refusal("The stream key must be NAME?token=…. Copy it from the studio.")
        }
        // Only `token` is read; other parameters are ignored.
        let parameters = parts.count > 1 ? parts[1].split(separator: "&") : []
        guard let text = parameters.first(where: { $0.hasPrefix("token=") })?.dropFirst("token=".count) else {
            throw IngestSettings.Refusal("The stream key is missing ?token=…. Copy it from the studio.")
        }
        let key: IngestKey
        do throws(TokenRefusal) {
            key = try verifyIngestKey(String(text), now: now)
        } catch {
            throw IngestSettings.Refusal(error.description)
        }
        // Also an admin's: a key is good for its stream alone, where it can be replaced.
        guard key.token.mayPublish(to: stream), key.issued == nil || key.token.scope.contains(stream) else {
            throw IngestSettings.Refusal("This key doesn't allow publishing to this stream.")
        }
        return IngestSettings.Grant(
            stream: stream, sender: key.token.sender, keyIssued: key.issued)
    }
}
