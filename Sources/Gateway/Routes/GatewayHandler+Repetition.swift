import Base
import Crypto
import HTTP

/// Repeated requests: clients send one again when its response was lost.
extension GatewayHandler {
    /// Calls a route's handler, or repeats its earlier response to the same `Idempotency-Key`.
    func answerOnce(_ call: Call, _ route: Route) async throws -> HTTPResponse {
        guard route.remembersKeys, let text = call.request.headers["idempotency-key"] else {
            return try await route.answer(self, call)
        }
        guard (1...255).contains(text.utf8.count) else { throw JSONBody.invalid("Idempotency-Key") }
        // An invalid token has no owner; the route's own refusal describes the reason.
        guard let owner = call.owner else { return try await route.answer(self, call) }
        let key = AnswerShelf.Key(owner: owner, text: text)
        return try await repetitions.answerOnce(key, digest: call.digest, at: call.access.now()) {
            try await route.answer(self, call)
        }
    }
}

extension Route {
    /// Whether responses are remembered by key: for every POST except `createStream`, which stores its own durably.
    var remembersKeys: Bool { method == .post && operationID != "createStream" }
}

extension Call {
    /// The owner of the request's key; nil for an invalid token.
    fileprivate var owner: AnswerShelf.Owner? {
        do throws(Problem) {
            guard case .token(let token)? = try access.credential() else {
                return .address(request.clientAddress)
            }
            var stream: StreamID?
            if case .one(let name) = token.scope { stream = name }
            return .participant(token.subject, token.role, of: stream)
        } catch {
            return nil
        }
    }

    /// A digest of everything that makes a different request; without the token, which may have been renewed.
    fileprivate var digest: [UInt8] {
        var parts = [request.path, request.headers["content-type"] ?? ""]
        for item in request.query where item.name != "access_token" { parts += [item.name, item.value] }
        // An invitation determines what is requested: with another one, it is another request.
        if case .invitation? = try? access.credential() {
            parts.append(request.headers["authorization"] ?? request.query("access_token") ?? "")
        }
        // Each part is preceded by its length, so that no two lists of parts yield the same bytes.
        let head = parts.flatMap { Array("\($0.utf8.count):\($0)".utf8) }
        return HMAC.sha256(key: Array("rostrum".utf8).span, (head + request.body).span)
    }
}
