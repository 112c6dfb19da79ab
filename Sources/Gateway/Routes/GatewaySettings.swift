import Base
import Crypto
import Foundation
import HTTP
import Node

/// How the routes behave.
package struct GatewaySettings: Sendable {
    /// Who may watch.
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
        /// Nil where none is needed, or one is made for each session.
        package let username: String?
        /// Nil where none is needed, or one is made for each session.
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

    /// This server's own ports for TURN, and what makes passwords for them.
    package struct TURN: Sendable {
        /// Nil where none is.
        package let tls, tcp, udp: UInt16?
        /// Derived from what signs tokens.
        package let secret: Secret<String>

        package init(tls: UInt16?, tcp: UInt16?, udp: UInt16?, secret: Secret<String>) {
            self.tls = tls
            self.tcp = tcp
            self.udp = udp
            self.secret = secret
        }

        /// - Parameter signing: what signs tokens.
        package static func secret(from signing: Secret<[UInt8]>) -> Secret<String> {
            let purpose = Array("rostrum turn passwords".utf8)
            return Secret(Base64URL.encode(HMAC.sha256(key: signing.exposed.span, purpose.span)))
        }

        /// What costs least comes first.
        /// - Parameter host: as a URL has it.
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

    /// Of streams and of the feed alike.
    package var viewers = Viewers.token
    /// Of the program, for clients.
    package var version = ""
    /// Whether anything is decoded: pictures, compositions and recordings.
    package var transcodes = true
    /// Whether there is a disk for recordings.
    package var records = true
    /// Whether streams can be watched by HLS.
    package var makesHLS = false
    /// So far, in seconds, hosts may let viewers by HLS go back; 0 for not at all.
    package var longestDVR = 0
    /// Whether clips are made.
    package var makesClips = false
    /// Whether programmes are sent on.
    package var restreams = false
    /// Where publishers are taken by RTMP; nil if they are not.
    package var rtmpPort: UInt16?
    /// Nil where no encoders are taken by RTMPS.
    package var rtmpsPort: UInt16?
    /// Nil where no encoders are taken by SRT.
    package var srtPort: UInt16?
    /// Whether encoders by SRT have to know the operator's passphrase.
    package var isSRTEncrypted = false
    /// Hand out tokens to anyone on this machine.
    package var isDevelopment = false
    /// In the order in which clients are told.
    package var iceServers: [ICEServer] = []
    /// Where this server itself takes clients by TURN; nil if it does not.
    package var turn: TURN?
    /// What TURN servers without a password of their own share with us.
    package var iceServerSecret: Secret<String>?
    /// How long a viewer waits with `?wait` and without a number.
    package var usualPatience = Duration.seconds(60)
    /// What a longer `?wait=` is cut to.
    package var longestPatience = Duration.seconds(3_600)

    /// How often players are told what changes.
    struct PlayerEvents: Sendable {
        /// Between two looks.
        var interval = Duration.seconds(1)
        /// After which a comment shows proxies that the connection is in use.
        var silence = Duration.seconds(15)
    }

    var playerEvents = PlayerEvents()

    /// Where clients find things; the node is given the same.
    package var paths = ResourcePaths(previews: PreviewAddress(keys: nil))

    /// Why nothing can be stored at the moment; nil while it can.
    package var hindrance: (@Sendable () -> String?)?

    /// Metrics from outside the gateway, such as the store's and the webhooks'.
    package var furtherMetrics: (@Sendable () -> [Metric])?

    package init() {}

    /// Whether encoders are taken, by RTMP or by RTMPS.
    var takesRTMP: Bool { rtmpPort != nil || rtmpsPort != nil }
    var takesSRT: Bool { srtPort != nil }

    /// `GET /v1/server`: what clients choose by, such as which link to share.
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

    /// The `Link` fields of a new session.
    ///
    /// Passwords that last go to bearers of tokens only: with them anybody could relay anything for ever.
    /// - Parameters:
    ///   - subject: whose session it is; nil for somebody without a token.
    ///   - host: how the client calls this server.
    ///   - now: seconds since 1970.
    func linkHeaders(for subject: ParticipantID?, at host: String, now: Int) -> [String] {
        let expiry = now + Self.relayLifetime
        let others = iceServers.compactMap { server -> String? in
            if server.credential != nil { return subject == nil ? nil : server.link }
            guard let iceServerSecret, server.url.hasPrefix("turn") else { return server.link }
            return server.limited(to: subject, by: iceServerSecret, until: expiry).link
        }
        guard let turn else { return others }
        // To anybody who has a session: by these nothing can be reached but sessions.
        return others
            + turn.servers(at: host).map { $0.limited(to: subject, by: turn.secret, until: expiry).link }
    }

    /// For how long a password for a TURN server is good, in seconds: as long as any stream.
    private static let relayLifetime = 43_200
}

extension GatewaySettings.ICEServer {
    /// The same with a password that ends.
    /// - Source: draft-uberti-behave-turn-rest-00 §2.2; coturn's `use-auth-secret`.
    func limited(to subject: ParticipantID?, by secret: Secret<String>, until expiry: Int) -> Self {
        let key = Array(secret.exposed.utf8)
        // Who it is concerns no relay; that it is always the same one lets it limit each.
        let bearer =
            subject.map {
                Base64URL.encode(HMAC.sha256(key: key.span, Array($0.description.utf8).span).prefix(9))
            }
            ?? "guest"
        let username = "\(expiry):\(bearer)"
        let password = Data(HMAC.sha1(key: key.span, Array(username.utf8).span)).base64EncodedString()
        return Self(url: url, username: username, credential: Secret(password))
    }

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
