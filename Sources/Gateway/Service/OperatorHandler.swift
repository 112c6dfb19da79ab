import Base
import HTTP

/// Health, readiness and metrics for operators' tools, on a listener of its own and without tokens.
///
/// Prometheus and load balancers need no credentials here: the listener's address is the only protection.
package struct OperatorHandler: HTTPHandler {
    private let gateway: GatewayHandler

    package init(_ gateway: GatewayHandler) {
        self.gateway = gateway
    }

    /// Answers health, readiness and metrics; 404 for everything else.
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

    /// A problem document as from `GatewayHandler`, but without CORS fields.
    package func refusal(_ status: Int, _ detail: String) -> HTTPResponse {
        Problem(status, nil, detail).response
    }
}
