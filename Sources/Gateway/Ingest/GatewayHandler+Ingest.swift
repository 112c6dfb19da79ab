import Base
import HTTP
import Node
import Stage

/// Addresses and keys for encoders.
extension GatewayHandler {
    /// `GET .../ingest`: addresses for encoders, a key for the sender, and the state of connected encoders.
    func showIngest(_ call: Call) async throws -> HTTPResponse {
        let stream = try call.stream
        let token = try call.access.requirePublisher(of: stream)
        try await requireAdmitted(token.sender, to: stream)
        var revocations = StageRecord.LinkRevocations()
        do throws(StageRefusal) {
            revocations = try await service.linkRevocations(of: stream)
        } catch {
            // A host may configure the encoder before the stream exists.
            guard error == .unknownStream else { throw error }
        }
        return Self.fresh(try await ingest(call, token, after: revocations), status: 200)
    }

    /// `POST .../ingest/key`: a new key for the sender; all earlier ones become invalid.
    func replaceIngestKey(_ call: Call) async throws -> HTTPResponse {
        let stream = try call.stream
        let token = try call.access.requirePublisher(of: stream)
        guard settings.takesRTMP || settings.takesSRT else {
            throw Problem(404, nil, "This server doesn't accept RTMP or SRT, so there are no keys.")
        }
        let answer = try await service.perform(.replaceKey, in: stream, from: token.sender)
        return Self.fresh(try await ingest(call, token, after: answer.linkRevocations), status: 201)
    }

    /// The response of both routes.
    /// - Parameter revocations: the new key must be issued after these.
    private func ingest(
        _ call: Call, _ token: Token, after revocations: StageRecord.LinkRevocations
    ) async throws -> JSON {
        let stream = try call.stream
        let origin = call.request.origin
        var answer: [String: JSON] = [
            "whip": .object(["server": .string("\(origin ?? "")/whip/\(stream)")]), "rtmp": .null,
            "srt": .null,
            "encoders": .array(
                await service.ingestStatuses(of: stream, for: token.sender).map(\.json)),
        ]
        guard settings.takesRTMP || settings.takesSRT else { return .object(answer) }
        // Each request signs a new key; earlier ones remain valid until they expire or are replaced.
        let (key, expires) = try call.access.ingestKey(to: stream, of: token, after: revocations)
        let host = Self.host(of: origin)
        let expiresAt = JSON.string(Timestamp.text(Double(expires)))
        if settings.takesRTMP {
            // Default ports are left out, as encoders show the URL to people. RTMPS is preferred: the key is secret.
            let plain = settings.rtmpPort.map { "rtmp://\(host)\($0 == 1_935 ? "" : ":\($0)")/live" }
            let secure = settings.rtmpsPort.map { "rtmps://\(host)\($0 == 443 ? "" : ":\($0)")/live" }
            answer["rtmp"] = .object([
                "server": .string(secure ?? plain ?? ""),
                "plainServer": plain.map { .string($0) } ?? .null,
                "key": .string(IngestKey.field(stream, key)),
                "expiresAt": expiresAt,
            ])
        }
        if let port = settings.srtPort {
            // Null for a key that SRT cannot carry; the other protocols remain.
            let streamID = IngestKey.streamID(stream, key)
            answer["srt"] = .object([
                "server": .string("srt://\(host):\(port)"), "streamId": streamID.map { .string($0) } ?? .null,
                "url": streamID.map { .string("srt://\(host):\(port)?streamid=\($0)") } ?? .null,
                "passphrase": .bool(settings.isSRTEncrypted), "expiresAt": expiresAt,
            ])
        }
        return .object(answer)
    }

    /// The host of an origin, without scheme and port; `localhost` if the client did not name one.
    static func host(of origin: String?) -> String {
        guard let authority = origin?.split(separator: "/").last else { return "localhost" }
        if authority.hasPrefix("[") { return authority.prefix { $0 != "]" } + "]" }
        return String(authority.prefix { $0 != ":" })
    }
}

extension Access {
    /// Signs a stream key for the bearer of a token; it ends no later than the last token obtainable by renewing
    /// that one.
    /// - Throws: 503 if the server has no signing key.
    func ingestKey(
        to stream: StreamID, of token: Token, after revocations: StageRecord.LinkRevocations
    ) throws(Problem) -> (text: Secret<String>, expires: Int) {
        let expires = min(now() + IngestKey.lifetime, max(token.renewableUntil, token.expires))
        let key = Token(
            keyID: token.keyID, subject: token.subject, name: token.name, scope: .one(stream),
            role: token.role, capabilities: token.capabilities, expires: expires, link: token.link)
        // Keys issued up to a revocation are invalid, so this one has to be issued later.
        let issued = max(now(), revocations.firstKey(of: token.subject))
        guard let text = authority.mint(ingestKeyOf: key, issuedAt: issued) else {
            throw Problem(503, nil, "This server has no signing key.")
        }
        return (text, expires)
    }
}
