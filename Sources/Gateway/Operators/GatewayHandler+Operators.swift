import Base
import HTTP
import Node

/// Sessions and statistics for operators; requires an admin's token from any machine.
extension GatewayHandler {
    /// `GET /v1/sessions`: a page of the sessions that match the query.
    func listSessions(_ call: Call) async throws -> HTTPResponse {
        try call.access.requireAdmin()
        return Self.fresh(await service.sessionList(try SessionFilter(call.request)))
    }

    /// `GET /v1/sessions/{session}`: the dossier of a session, by its id or label.
    func showDossier(_ call: Call) async throws -> HTTPResponse {
        try call.access.requireAdmin()
        guard let dossier = await service.dossier(of: call.parameters["session"] ?? "") else {
            throw SessionRefusal.unknownSession
        }
        return Self.fresh(dossier)
    }

    /// `GET /v1/sessions/{session}/capture`: records packet headers and answers with a pcap file when the time is
    /// over.
    func captureSession(_ call: Call) async throws -> HTTPResponse {
        try call.access.requireAdmin()
        let name = call.parameters["session"] ?? ""
        var seconds = Self.usualCaptureSeconds
        if let text = call.request.query("seconds") {
            guard let number = Int(text), (1...Self.longestCaptureSeconds).contains(number) else {
                throw JSONBody.invalid("seconds")
            }
            seconds = number
        }
        let bytes = try await service.capture(name, for: .seconds(seconds))
        return HTTPResponse(
            status: 200,
            headers: [
                "Content-Type": "application/vnd.tcpdump.pcap", "Cache-Control": "no-store",
                "Content-Disposition": "attachment; filename=\"session.pcap\"",
                "X-Content-Type-Options": "nosniff",
            ], body: bytes)
    }

    /// Default of `seconds`.
    private static let usualCaptureSeconds = 10
    /// Limit of `seconds`; also the extra time that the HTTP server grants such a request.
    static let longestCaptureSeconds = 60

    /// `DELETE /v1/sessions/{session}`: ends a session, by its id or label.
    func dismissSession(_ call: Call) async throws -> HTTPResponse {
        try call.access.requireAdmin()
        guard await service.endSession(named: call.parameters["session"] ?? "") else {
            throw SessionRefusal.unknownSession
        }
        return HTTPResponse(status: 204)
    }

    /// `GET /v1/admin/statistics`: the totals that the operators' page draws.
    func showStatistics(_ call: Call) async throws -> HTTPResponse {
        try call.access.requireAdmin()
        let answered = answerTimes.copy
        var json = await service.operatorStatistics(published: answered.published, played: answered.played)
        json["version"] = .string(settings.version)
        json["process"] = ProcessMetrics.json
        return Self.fresh(json)
    }
}

extension Access {
    /// Throws unless the request has an admin's token; unlike `requireOperator`, also on this machine.
    func requireAdmin() throws(Problem) {
        guard let token = try token() else { throw Self.unauthorized("This requires an admin's token.") }
        guard token.role == .admin else { throw Self.forbidden("This requires an admin's token.") }
    }
}

extension SessionFilter {
    /// Limit of sessions per page.
    static let longestPage = 200

    /// Parses the query of `GET /v1/sessions`; empty parameters count as missing.
    /// - Throws: a 422 about a malformed parameter.
    init(_ request: HTTPRequest) throws(Problem) {
        self.init()
        // A form's empty field is no filter.
        func text(_ name: String) -> String? { request.query(name).flatMap { $0.isEmpty ? nil : $0 } }
        stream = text("stream")
        identity = text("identity")
        id = text("id")
        address = text("address")
        search = text("search")
        switch request.query("state") {
        // Ended sessions are kept for a while, for questions that come later.
        case nil, "live": isEnded = false
        case "ended": isEnded = true
        default:
            // Sessions have other states than streams.
            var problem = JSONBody.invalid("state")
            problem.detail = "state must be live or ended."
            throw problem
        }
        if let text = request.query("limit") {
            guard let number = Int(text), (1...Self.longestPage).contains(number) else {
                throw JSONBody.invalid("limit")
            }
            limit = number
        }
        if let text = request.query("cursor") {
            guard let order = UInt64(text) else { throw JSONBody.invalid("cursor") }
            before = order
        }
    }
}
