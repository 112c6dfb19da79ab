import Base
import Foundation
import HTTP
import Node
import Store
import Testing

@testable import Gateway

/// A handler on a node, and people with tokens.
struct StageBench {
    let node: Node
    let authority = TokenAuthority(keys: [
        TokenAuthority.Key(id: "dev", secret: Secret(Array("0123456789abcdef0123456789abcdef".utf8)))
    ])
    let handler: GatewayHandler

    /// Runs a test on a node that ends with it.
    static func run(
        store: any StreamStore = MemoryStore(), createsStreams: Bool = false,
        _ body: (StageBench) async throws -> Void
    ) async throws {
        var configuration = NodeConfiguration(udp: TransportAddress(ip: .loopback, port: 0))
        configuration.createsStreamsOnPublish = createsStreams
        let node = try Node(configuration: configuration, log: .silent, store: store)
        try await node.load()
        await node.start()
        do {
            try await body(try StageBench(node))
        } catch {
            await node.stop()
            throw error
        }
        await node.stop()
    }

    private init(_ node: Node) throws {
        self.node = node
        var settings = GatewaySettings()
        settings.rtmpPort = 1_935
        handler = GatewayHandler(
            service: node, authority: authority, settings: settings, pages: try LoadedPages.all.get(),
            counters: HTTPCounters(), now: { Int(Date().timeIntervalSince1970) })
    }

    func token(
        _ name: String, _ role: Role, stream: String = "*", capabilities: Set<Capability> = [],
        expiresIn seconds: Int = 3_600
    ) throws -> String {
        let now = Int(Date().timeIntervalSince1970)
        let token = authority.mint(
            subject: try #require(ParticipantID(name)), name: name.capitalized,
            scope: try #require(Token.Scope(stream, for: role)), role: role, capabilities: capabilities,
            issuedAt: now, expires: now + seconds)
        return try #require(token).exposed
    }

    func request(
        _ method: HTTPMethod, _ target: String, token: String? = nil, body: String = "",
        type: String = "application/json", _ headers: HTTPHeaders = [:]
    ) -> HTTPRequest {
        var request = HTTPRequest.made(method, target, token: token, headers, body: body)
        if !body.isEmpty { request.headers.add("Content-Type", type) }
        return request
    }

    func ask(
        _ method: HTTPMethod, _ target: String, token: String? = nil, body: String = "",
        type: String = "application/json", _ headers: HTTPHeaders = [:]
    ) async -> HTTPResponse {
        await handler.respond(
            to: request(method, target, token: token, body: body, type: type, headers))
    }

    /// Asks, and expects that it is done.
    @discardableResult
    func `do`(_ method: HTTPMethod, _ target: String, token: String, body: String = "") async -> JSON {
        let response = await ask(method, target, token: token, body: body)
        #expect((200..<300).contains(response.status), "\(method.rawValue) \(target): \(response.text)")
        return (try? response.json(JSON.self)) ?? .null
    }
}

extension JSON {
    var string: String? { if case .string(let text) = self { text } else { nil } }
}
