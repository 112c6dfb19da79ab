import Base
import HTTP
import Node
import Restream
import Stage

/// Restream targets, to which a stream's programme is sent by RTMP; for the host and admins.
extension GatewayHandler {
    /// `POST .../restreams`: adds a target, whose key is secret and never returned.
    func addRestream(_ call: Call) async throws -> HTTPResponse {
        let stream = try await moderatedStream(call)
        let body = try call.body()
        guard let text = try body.string("url") else { throw JSONBody.invalid("url") }
        // The messages never repeat key or URL, which may contain a key by mistake.
        guard let key = try body.string("key"), RestreamAddress.isKey(key) else {
            throw Problem(
                422, nil,
                "key must be a stream key: 1 to "
                    + "\(RestreamAddress.keyLengthLimit) ASCII characters without spaces.")
        }
        let address: RestreamAddress
        do throws(RestreamAddress.Failure) {
            address = try RestreamAddress(text)
        } catch {
            throw Problem(422, nil, "url is invalid: \(error.text)")
        }
        let restream = try await service.addRestream(to: address, key: Secret(key), of: stream)
        var response = Self.fresh(restream.json, status: 201)
        response.headers.set("Location", ResourcePaths.restream(restream.number, of: stream))
        return response
    }

    /// `GET .../restreams`: all targets and their state, without keys.
    func listRestreams(_ call: Call) async throws -> HTTPResponse {
        let stream = try await moderatedStream(call)
        let restreams = try await service.restreams(of: stream)
        return Self.fresh(.object(["restreams": .array(restreams.map(\.json))]))
    }

    /// `GET .../restreams/{restream}`: one target and its state.
    func showRestream(_ call: Call) async throws -> HTTPResponse {
        let stream = try await moderatedStream(call)
        let number = try Self.restream(call)
        guard let restream = try await service.restreams(of: stream).first(where: { $0.number == number })
        else { throw RestreamRefusal.unknown }
        return Self.fresh(restream.json)
    }

    /// `DELETE .../restreams/{restream}`: disconnects from a target and removes it.
    func removeRestream(_ call: Call) async throws -> HTTPResponse {
        let stream = try await moderatedStream(call)
        try await service.removeRestream(try Self.restream(call), of: stream)
        return HTTPResponse(status: 204)
    }

    /// The target's number in the path; digits only, as `Int` would accept a sign.
    private static func restream(_ call: Call) throws(RestreamRefusal) -> Int {
        let text = call.parameters["restream"] ?? ""
        guard text.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let number = Int(text) else {
            throw .unknown
        }
        return number
    }
}

extension RestreamAddress.Failure {
    /// What a valid URL looks like, for the error's detail.
    fileprivate var text: String {
        switch self {
        case .scheme: "it must begin with rtmp:// or rtmps://."
        case .host: "its host must be a name or an IP address."
        case .port: "its port must be 80, 443, or 1024 to 65535."
        case .application: "the application must follow the host, as in rtmps://live.example.org/app."
        case .secret: "it can't have a user name, password, query or fragment. Put secrets in key."
        case .tooLong: "it can have up to \(RestreamAddress.lengthLimit) bytes."
        }
    }
}
