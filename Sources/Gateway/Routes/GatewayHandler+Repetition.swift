import Base
import Crypto
import HTTP

/// Requests that come again because their answer got lost.
extension GatewayHandler {
    /// Answers a request at its route; one that came before with the same `Idempotency-Key`, as it was answered then.
    func answerOnce(_ call: Call, _ route: Route) async throws -> HTTPResponse {
        guard route.remembersKeys, let text = call.request.headers["idempotency-key"] else {
            return try await route.answer(self, call)
        }
        guard (1...255).contains(text.utf8.count) else { throw JSONBody.invalid("Idempotency-Key") }
        // Whose token is not good, is for the route to say.
        guard let owner = call.owner else { return try await route.answer(self, call) }
        let key = AnswerShelf.Key(owner: owner, text: text)
        return try await repetitions.answerOnce(key, digest: call.digest, at: call.access.now()) {
            try await route.answer(self, call)
        }
    }
}

extension Route {
    /// Whether answers to it are kept with the key that their request has: all that make something but one, which keeps
    /// its own where a restart does not lose them.
    var remembersKeys: Bool { method == .post && operationID != "createStream" }
}

extension Call {
    /// Whose key it is; nil where a token is not good, so that nobody can say.
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

    /// Of all that makes it another request; a token may have been renewed.
    fileprivate var digest: [UInt8] {
        var parts = [request.path, request.headers["content-type"] ?? ""]
        for item in request.query where item.name != "access_token" { parts += [item.name, item.value] }
        // An invitation says who asks for what: two who show different ones do not ask for the same.
        if case .invitation? = try? access.credential() {
            parts.append(request.headers["authorization"] ?? request.query("access_token") ?? "")
        }
        // Length before each part, so that none reaches into the next.
        let head = parts.flatMap { Array("\($0.utf8.count):\($0)".utf8) }
        return HMAC.sha256(key: Array("rostrum".utf8).span, (head + request.body).span)
    }
}
