import Base
import HTTP
import Node
import Stage

/// What encoders have to be told.
extension GatewayHandler {
    /// `GET .../ingest`: where an encoder publishes to, a key for whoever asks, and what comes of encoders now.
    func showIngest(_ call: Call) async throws -> HTTPResponse {
        let stream = try call.stream
        let token = try call.access.requirePublisher(of: stream)
        var revocations = StageRecord.LinkRevocations()
        do throws(StageRefusal) {
            revocations = try await service.linkRevocations(of: stream)
        } catch {
            // Whoever is about to make it may set up their encoder before.
            guard error == .unknownStream else { throw error }
        }
        return Self.fresh(try await ingest(call, token, after: revocations), status: 200)
    }

    /// `POST .../ingest/key`: another key for whoever asks; what they had before is good for nothing.
    func replaceIngestKey(_ call: Call) async throws -> HTTPResponse {
        let stream = try call.stream
        let token = try call.access.requirePublisher(of: stream)
        guard settings.takesRTMP || settings.takesSRT else {
            throw Problem(404, nil, "Encoders are not taken by RTMP or SRT here, so there are no keys.")
        }
        let answer = try await service.perform(.replaceKey, in: stream, from: token.sender)
        return Self.fresh(try await ingest(call, token, after: answer.linkRevocations), status: 201)
    }

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
        let (key, expires) = try call.access.ingestKey(to: stream, of: token, after: revocations)
        let host = Self.host(of: origin)
        let expiresAt = JSON.string(Timestamp.text(Double(expires)))
        if settings.takesRTMP {
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
            let streamID = IngestKey.streamID(stream, key)
            answer["srt"] = .object([
                "server": .string("srt://\(host):\(port)"), "streamId": streamID.map { .string($0) } ?? .null,
                "url": streamID.map { .string("srt://\(host):\(port)?streamid=\($0)") } ?? .null,
                "passphrase": .bool(settings.isSRTEncrypted), "expiresAt": expiresAt,
            ])
        }
        return .object(answer)
    }

    /// As the client knows this server.
    static func host(of origin: String?) -> String {
        guard let authority = origin?.split(separator: "/").last else { return "localhost" }
        if authority.hasPrefix("[") { return authority.prefix { $0 != "]" } + "]" }
        return String(authority.prefix { $0 != ":" })
    }
}

extension Access {
    /// Signs a stream key for the bearer of a token, which lasts no longer than what may be had for the token.
    func ingestKey(
        to stream: StreamID, of token: Token, after revocations: StageRecord.LinkRevocations
    ) throws(Problem) -> (text: Secret<String>, expires: Int) {
        let expires = min(now() + IngestKey.lifetime, max(token.renewableUntil, token.expires))
        let key = Token(
            keyID: token.keyID, subject: token.subject, name: token.name, scope: .one(stream),
            role: token.role, capabilities: token.capabilities, expires: expires, link: token.link)
        // What was issued until a revocation is good for nothing, so this one is issued after it.
        let issued = max(now(), revocations.firstKey(of: token.subject))
        guard let text = authority.mint(ingestKeyOf: key, issuedAt: issued) else {
            throw Problem(503, nil, "This server has no key to sign with.")
        }
        return (text, expires)
    }
}
