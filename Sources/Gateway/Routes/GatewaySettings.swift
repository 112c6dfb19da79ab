import Base
import Node

/// How the routes behave.
package struct GatewaySettings: Sendable {
    package enum Viewers: String, Sendable, CaseIterable {
        /// Anyone may watch any stream.
        case everyone = "public"
        /// Viewers show a token.
        case token
    }

    /// Told to every client with a session (RFC 9725 §4.6).
    package struct ICEServer: Sendable, Equatable {
        /// `stun:` or `turn:` and so on.
        package let url: String
        package let username: String?
        package let credential: Secret<String>?

        package init(url: String, username: String? = nil, credential: Secret<String>? = nil) {
            self.url = url
            self.username = username
            self.credential = credential
        }

        package static func == (left: ICEServer, right: ICEServer) -> Bool {
            left.url == right.url && left.username == right.username
                && left.credential?.exposed == right.credential?.exposed
        }
    }

    package var viewers = Viewers.token
    /// Of the program, for clients.
    package var version = ""
    /// Whether anything is decoded: pictures, compositions and recordings.
    package var transcodes = true
    /// Whether there is a disk for recordings.
    package var records = true
    /// Hand out tokens to anyone on this machine.
    package var isDevelopment = false
    package var iceServers: [ICEServer] = []
    /// How long a viewer waits with `?wait` and without a number.
    package var usualPatience = Duration.seconds(60)
    package var longestPatience = Duration.seconds(3_600)

    /// Checks the addresses of previews.
    package var previewAddress = PreviewAddress(key: nil)

    /// Why nothing can be remembered at the moment; nil while it can.
    package var hindrance: (@Sendable () -> String?)?

    /// Of what the routes do not know.
    package var furtherMetrics: (@Sendable () -> [Metric])?

    package init() {}

    /// `GET /v1/server`: what clients choose by, such as which link to share.
    var description: HTTPResponse {
        var response = HTTPResponse.json(
            200,
            .object([
                "viewers": .string(viewers.rawValue), "transcoder": .bool(transcodes),
                "recordings": .bool(transcodes && records), "development": .bool(isDevelopment),
                "version": .string(version),
            ]))
        response.headers.set("Cache-Control", "public, max-age=60")
        return response
    }

    /// The `Link` fields of a new session.
    var linkHeaders: [String] { iceServers.map(\.link) }
}

extension GatewaySettings.ICEServer {
    /// - Source: RFC 9725 §4.6, RFC 8288 §3.
    var link: String {
        var text = "<\(url)>; rel=\"ice-server\""
        if let username { text += "; username=\"\(Self.quoted(username))\"" }
        if let credential {
            text += "; credential=\"\(Self.quoted(credential.exposed))\"; credential-type=\"password\""
        }
        return text
    }

    private static func quoted(_ text: String) -> String {
        text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"")
    }
}
