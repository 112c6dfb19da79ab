import Base
import Crypto
import Foundation
import HTTP
import Node

/// Configuration of the HTTP interface; set while the server is assembled.
package struct GatewaySettings: Sendable {
    /// Whether watching requires a token.
    package enum Viewers: String, Sendable, CaseIterable {
        /// Anyone may watch any stream, apart from gates.
        case everyone = "public"
        /// Viewers need a token for the stream.
        case token
    }

    /// A STUN or TURN server that clients learn of when they create a session (RFC 9725 §4.6).
    package struct ICEServer: Sendable, Equatable {
        /// A `stun:`, `stuns:`, `turn:` or `turns:` URI (RFC 7064, RFC 7065).
        package let url: String
        /// Nil if the server needs none, or if one is generated for each session.
        package let username: String?
        /// Nil if the server needs none, or if one is generated for each session.
        package let credential: Secret<String>?

        package init(url: String, username: String? = nil, credential: Secret<String>? = nil) {
            self.url = url
            self.username = username
            self.credential = credential
        }

        /// Compares credentials in the clear, as `Secret` is not comparable.
        package static func == (left: ICEServer, right: ICEServer) -> Bool {
            left.url == right.url && left.username == right.username
                && left.credential?.exposed == right.credential?.exposed
        }
    }

    /// This server's own TURN ports, and the secret from which passwords are derived.
    package struct TURN: Sendable {
        /// Port by transport; nil if the server does not listen there.
        package let tls, tcp, udp: UInt16?
        /// Derived from the key that signs tokens; see `secret(from:)`.
        package let secret: Secret<String>

        package init(tls: UInt16?, tcp: UInt16?, udp: UInt16?, secret: Secret<String>) {
            self.tls = tls
            self.tcp = tcp
            self.udp = udp
            self.secret = secret
        }

        /// Derives the secret; a distinct purpose keeps it unrelated to the signing key.
        /// - Parameter signing: the key that signs tokens.
        package static func secret(from signing: Secret<[UInt8]>) -> Secret<String> {
            let purpose = Array("rostrum turn passwords".utf8)
            return Secret(Base64URL.encode(HMAC.sha256(key: signing.exposed.span, purpose.span)))
        }

        /// The ports as URIs, in order of cost: UDP, TCP, TLS.
        /// - Parameter host: in URL notation, with brackets around an IPv6 address.
        /// - Source: RFC 7065 §3.
        func servers(at host: String) -> [ICEServer] {
            let urls = [
                udp.map { "turn:\(host):\($0)?transport=udp" },
                tcp.map { "turn:\(host):\($0)?transport=tcp" },
                tls.map { "turns:\(host):\($0)?transport=tcp" },
            ]
            return urls.compactMap { $0.map { ICEServer(url: $0) } }
        }
    }

    /// For streams and the feed alike.
    package var viewers = Viewers.token
    /// The program's version, shown to clients.
    package var version = ""
    /// Whether the transcoder is available, which previews, compositions and recordings need.
    package var transcodes = true
    /// Whether there is a data folder for recordings.
    package var records = true
    /// Whether streams are available by HLS.
    package var makesHLS = false
    /// Limit of a stream's HLS window, in seconds; 0 if there are no windows.
    package var longestDVR = 0
    /// Whether viewers and hosts can make clips.
    package var makesClips = false
    /// Whether programmes can be sent to restream targets.
    package var restreams = false
    /// TCP port for publishers by RTMP; nil if there is none.
    package var rtmpPort: UInt16?
    /// TCP port for RTMPS; nil if there is none.
    package var rtmpsPort: UInt16?
    /// UDP port for SRT; nil if there is none.
    package var srtPort: UInt16?
    /// Whether SRT requires the operator's passphrase.
    package var isSRTEncrypted = false
    /// Whether anyone on this machine may issue tokens; for development only.
    package var isDevelopment = false
    /// External STUN and TURN servers, in the order in which clients learn of them.
    package var iceServers: [ICEServer] = []
    /// This server's own TURN; nil if it is off.
    package var turn: TURN?
    /// Secret shared with external TURN servers that have no fixed password; nil if there are none.
    package var iceServerSecret: Secret<String>?
    /// How long a viewer waits with `?wait` without a number.
    package var usualPatience = Duration.seconds(60)
    /// Limit of `?wait=`; longer ones are cut to it.
    package var longestPatience = Duration.seconds(3_600)

    /// Intervals of players' event streams.
    struct PlayerEvents: Sendable {
        /// Between two checks for changes.
        var interval = Duration.seconds(1)
        /// Silence after which a comment is sent, so that proxies do not close the connection as idle.
        var silence = Duration.seconds(15)
    }

    /// Shorter in tests.
    var playerEvents = PlayerEvents()

    /// Paths of resources; the node uses the same.
    package var paths = ResourcePaths(previews: PreviewAddress(keys: nil))

    /// Returns why nothing can be stored at the moment; nil while storing works.
    package var hindrance: (@Sendable () -> String?)?

    /// Metrics from outside the gateway, such as the store's and the webhooks'.
    package var furtherMetrics: (@Sendable () -> [Metric])?

    package init() {}

    /// Whether encoders can publish by RTMP or RTMPS.
    var takesRTMP: Bool { rtmpPort != nil || rtmpsPort != nil }
    /// Whether encoders can publish by SRT.
    var takesSRT: Bool { srtPort != nil }

    /// `GET /v1/server`: the server's features, by which clients decide what to offer; cacheable for a minute.
    var description: HTTPResponse {
        var response = HTTPResponse.json(
            200,
            .object([
                "viewers": .string(viewers.rawValue), "transcoder": .bool(transcodes),
                "recordings": .bool(transcodes && records), "clips": .bool(makesClips),
                "hls": .bool(makesHLS), "dvrSeconds": .integer(longestDVR),
                "restreams": .bool(transcodes && restreams), "rtmp": .bool(takesRTMP), "srt": .bool(takesSRT),
                "development": .bool(isDevelopment),
                "version": .string(version),
            ]))
        response.headers.set("Cache-Control", "public, max-age=60")
        return response
    }

    /// The `Link` fields of a new session, which name STUN and TURN servers.
    ///
    /// Permanent passwords are given to bearers of tokens only: anyone with one can relay arbitrary traffic forever.
    /// - Parameters:
    ///   - subject: the session's owner; nil for a client without a token.
    ///   - host: the server's host as the client addresses it.
    ///   - now: seconds since 1970.
    func linkHeaders(for subject: ParticipantID?, at host: String, now: Int) -> [String] {
        let expiry = now + Self.relayLifetime
        let others = iceServers.compactMap { server -> String? in
            if server.credential != nil { return subject == nil ? nil : server.link }
            guard let iceServerSecret, server.url.hasPrefix("turn") else { return server.link }
            return server.limited(to: subject, by: iceServerSecret, until: expiry).link
        }
        guard let turn else { return others }
        // For every client with a session: this server relays to its own sessions only.
        return others
            + turn.servers(at: host).map { $0.limited(to: subject, by: turn.secret, until: expiry).link }
    }

    /// Lifetime of a generated TURN password, in seconds: longer than any stream.
    private static let relayLifetime = 43_200
}

extension GatewaySettings.ICEServer {
    /// The same server with a generated password that expires.
    /// - Source: draft-uberti-behave-turn-rest-00 §2.2; coturn's `use-auth-secret`.
    func limited(to subject: ParticipantID?, by secret: Secret<String>, until expiry: Int) -> Self {
        let key = Array(secret.exposed.utf8)
        // A digest of the identity: a relay need not know who it is, but can limit each user.
        let bearer =
            subject.map {
                Base64URL.encode(HMAC.sha256(key: key.span, Array($0.description.utf8).span).prefix(9))
            }
            ?? "guest"
        let username = "\(expiry):\(bearer)"
        let password = Data(HMAC.sha1(key: key.span, Array(username.utf8).span)).base64EncodedString()
        return Self(url: url, username: username, credential: Secret(password))
    }

    /// The value of a `Link` field.
    /// - Source: RFC 9725 §4.6, RFC 8288 §3.
    var link: String {
        var text = "<\(url)>; rel=\"ice-server\""
        if let username { text += "; username=\"\(Self.quoted(username))\"" }
        if let credential {
            text += "; credential=\"\(Self.quoted(credential.exposed))\"; credential-type=\"password\""
        }
        return text
    }

    /// Escapes a quoted-string's content (RFC 9110 §5.6.4).
    private static func quoted(_ text: String) -> String {
        text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"")
    }
}
