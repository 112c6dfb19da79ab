import Base
import Foundation
import HTTP
import Node
import Stage
import Store
import Testing

@testable import Gateway

/// Follows a stream, and cares for nothing of it.
private final class Silent: SyncFollower {
    func send(_ text: String) -> SyncDelivery { .queued }
    var isDrained: Bool { true }
    func close(_ reason: SyncClose) {}
}

/// A handler on a node, and people with tokens.
struct StageBench {
    let node: Node
    /// In seconds since 1970, for tokens.
    let now: @Sendable () -> Int
    let authority = TokenAuthority(keys: [
        TokenAuthority.Key(id: "dev", secret: Secret(Array("0123456789abcdef0123456789abcdef".utf8)))
    ])
    let handler: GatewayHandler

    /// Runs a test on a node that ends with it.
    /// - Parameter isTimeStill: however long a busy machine takes, nobody is taken to have left, and nobody may do
    ///   more than at once; nor does anything happen that comes after a while.
    static func run(
        store: any StreamStore = MemoryStore(), createsStreams: Bool = false, isTimeStill: Bool = false,
        _ body: (StageBench) async throws -> Void
    ) async throws {
        var configuration = NodeConfiguration(udp: TransportAddress(ip: .loopback, port: 0))
        configuration.createsStreamsOnPublish = createsStreams
        // No client ever connects, and a busy machine takes its time.
        configuration.connectTimeout = .seconds(3_600)
        let begin = Int(Date().timeIntervalSince1970)
        let moment = Moment(
            elapsed: MonotonicTime.zero + .seconds(3_600),
            wall: WallTime(milliseconds: Int64(begin) * 1_000))
        let node =
            isTimeStill
            ? try Node(configuration: configuration, log: .silent, store: store, now: { moment })
            : try Node(configuration: configuration, log: .silent, store: store)
        try await node.load()
        await node.start()
        do {
            let bench = try StageBench(node) { isTimeStill ? begin : Int(Date().timeIntervalSince1970) }
            try await body(bench)
        } catch {
            await node.stop()
            throw error
        }
        await node.stop()
    }

    private init(_ node: Node, now: @escaping @Sendable () -> Int) throws {
        self.node = node
        self.now = now
        var settings = GatewaySettings()
        settings.rtmpPort = 1_935
        handler = GatewayHandler(
            service: node, authority: authority, settings: settings, pages: try LoadedPages.all.get(),
            counters: HTTPCounters(), now: now,
            elapsed: { MonotonicTime.zero + .seconds(now()) })
    }

    func token(
        _ name: String, _ role: Role, stream: String = "*", capabilities: Set<Capability> = [],
        tiers: Set<String> = [], expiresIn seconds: Int = 3_600
    ) throws -> String {
        let now = now()
        let token = authority.mint(
            subject: try #require(ParticipantID(name)), name: name.capitalized,
            scope: try #require(Token.Scope(stream, for: role)), role: role, capabilities: capabilities,
            tiers: tiers, issuedAt: now, expires: now + seconds)
        return try #require(token).exposed
    }

    /// Connects somebody to a stream: whoever only asks for things has left after a while.
    /// - Parameter follower: what hears all that they are told.
    func connect(
        _ name: String, as authority: Stage.Sender.Authority, to stream: String,
        _ follower: any SyncFollower = Silent()
    ) async throws {
        let sender = Stage.Sender(
            id: try #require(ParticipantID(name)), name: name.capitalized, authority: authority)
        _ = try await node.follow(
            try #require(StreamID(stream)), as: sender, since: nil, until: nil, follower)
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
