import Base
import HTTP

/// What operators' tools are answered, on a listener of their own: health, readiness and numbers, without tokens.
package struct OperatorHandler: HTTPHandler {
    private let gateway: GatewayHandler

    package init(_ gateway: GatewayHandler) {
        self.gateway = gateway
    }

    /// Answers health, readiness and metrics; all else is not there.
    package func respond(to request: HTTPRequest) async -> HTTPResponse {
        if case .found(let route, _) = Router.route(request.method, request.path) {
            switch route.operationID {
            case "metrics": return await gateway.metrics()
            case "health", "readiness": return await gateway.respond(to: request)
            default: break
            }
        }
        return refusal(404, "This listener serves /metrics, /healthz and /readyz.")
    }

    /// As `GatewayHandler` says it, without CORS.
    package func refusal(_ status: Int, _ detail: String) -> HTTPResponse {
        Problem(status, nil, detail).response
    }
}
