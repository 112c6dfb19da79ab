import Base
import HTTP
import Node
import Stage
import TestSupport
import Testing

@testable import Gateway

/// Every route, asked by everybody, in every state of a stream: one table says who is let and who is not.
@Suite(.serialized) struct RoleMatrix {
    enum Actor: String, CaseIterable {
        case anonymous
        /// A host of another stream.
        case foreign
        case banned
        case viewer
        /// A viewer with an invitation.
        case invitee
        /// On stage, by the token.
        case speaker
        case host
        case admin

        var name: String {
            switch self {
            case .anonymous: ""
            case .foreign: "fay"
            case .banned: "bad"
            case .viewer: "vic"
            case .invitee: "ivy"
            case .speaker: "sam"
            case .host: "ann"
            case .admin: "root"
            }
        }

        var role: Role {
            switch self {
            case .anonymous, .banned, .viewer, .invitee: .viewer
            case .speaker: .speaker
            case .foreign, .host: .host
            case .admin: .admin
            }
        }
    }

    struct Row: Sendable, CustomStringConvertible {
        let method: HTTPMethod
        /// `S` stands for the stream, `SELF` for who asks.
        let target: String
        let body: String
        /// One for each actor; `backstage/live/ended` where that makes a difference.
        let statuses: [String]

        init(_ method: HTTPMethod, _ target: String, body: String = "", _ statuses: String) {
            self.method = method
            self.target = target
            self.body = body
            self.statuses = statuses.split(separator: " ").map(String.init)
        }

        var description: String { "\(method.rawValue) \(target)" }
    }

    // Nobody  other's  banned  viewer  invitee  speaker  host  admin
    private static let hostOnly = "401 403 403 403/403/409 403/403/409 403/403/409 200/200/409 200/200/409"

    private static let adminOnly =
        "401 403 403 403/403/409 403/403/409 403/403/409 403/403/409 200/200/409"

    static let table: [Row] = [
        Row(.post, "/v1/streams", body: #"{"id":"S"}"#, "401 403 403 403 403 403 409 409"),
        Row(.get, "/v1/streams/S", "401 403 200 200 200 200 200 200"),
        Row(.patch, "/v1/streams/S", body: #"{"title":"x"}"#, hostOnly),
        Row(.get, "/v1/streams/S/placement", "401 403 403 403 403 403 403 200"),
        Row(.patch, "/v1/streams/S/placement", body: #"{"pinned":0}"#, adminOnly),
        Row(.post, "/v1/streams/S/live", hostOnly),
        Row(.post, "/v1/streams/S/end", "401 403 403 403/403/409 403/403/409 403/403/409 200 200"),
        Row(.get, "/v1/streams/S/participants", "401 403 403 200 200 200 200 200"),
        Row(
            .post, "/v1/streams/S/participants",
            "401 403 403 200/200/409 200/200/409 200/200/409 200/200/409 200/200/409"),
        Row(.delete, "/v1/streams/S/participants/SELF", "401 403 403 200 200 200 409/409/200 200"),
        Row(.delete, "/v1/streams/S/participants/hal", hostOnly),
        Row(.delete, "/v1/streams/S/participants/hal?ban=true", hostOnly),
        Row(.get, "/v1/streams/S/bans", "401 403 403 403 403 403 200 200"),
        Row(.post, "/v1/streams/S/bans", body: #"{"participant":"hal"}"#, hostOnly),
        Row(.delete, "/v1/streams/S/bans/bad", hostOnly),
        Row(.post, "/v1/streams/S/hands", "401 403 403 200/200/409 200/200/409 409 409 200/200/409"),
        Row(.delete, "/v1/streams/S/hands/hal", hostOnly),
        Row(.patch, "/v1/streams/S/hands/hal", body: #"{"held":true}"#, hostOnly),
        Row(
            .delete, "/v1/streams/S/hands/SELF",
            "401 403 403 200/200/409 200/200/409 200/200/409 200/200/409 200/200/409"),
        Row(.post, "/v1/streams/S/invitations", body: #"{"participant":"hal"}"#, hostOnly),
        Row(
            .delete, "/v1/streams/S/invitations/ivy",
            "401 403 403 403/403/409 200/200/409 403/403/409 200/200/409 200/200/409"),
        Row(.post, "/v1/streams/S/invitations/ivy/accept", "401 403 404 404 200/200/409 404 404 404"),
        Row(
            .patch, "/v1/streams/S/speakers/sam", body: #"{"audioMuted":true,"paused":true}"#,
            "401 403 403 403 403 200/200/409 403 403"),
        Row(
            .delete, "/v1/streams/S/speakers/sam",
            "401 403 403 403/403/409 403/403/409 200/200/409 200/200/409 200/200/409"),
        Row(.post, "/v1/streams/S/speakers/sam/mute", hostOnly),
        Row(
            .post, "/v1/streams/S/links", body: #"{"role":"viewer"}"#,
            "401 403 403 403/403/409 403/403/409 403/403/409 201/201/409 201/201/409"),
        Row(.delete, "/v1/streams/S/links", hostOnly),
        Row(.get, "/v1/streams/S/ingest", "401 403 403 403 403 200 200 200"),
        Row(
            .post, "/v1/streams/S/ingest/key", "401 403 403 403 403 201/201/409 201/201/409 201/201/409"),
        // This server sends nothing on.
        Row(.get, "/v1/streams/S/restreams", "401 403 403 403 403 403 404 404"),
        Row(
            .post, "/v1/streams/S/restreams", body: #"{"url":"rtmp://a.example/live","key":"k"}"#,
            "401 403 403 403 403 403 404 404"),
        Row(.get, "/v1/streams/S/restreams/1", "401 403 403 403 403 403 404 404"),
        Row(.delete, "/v1/streams/S/restreams/1", "401 403 403 403 403 403 404 404"),
        // Nobody talks while viewers wait outside.
        Row(
            .post, "/v1/streams/S/comments", body: #"{"id":"c1","text":"hello"}"#,
            "401 403 403 409/201/409 409/201/409 409/201/409 409/201/409 409/201/409"),
        Row(.get, "/v1/streams/S/comments", "401 403 403 200 200 200 200 200"),
        Row(.delete, "/v1/streams/S/comments/7", "401 403 403 404 404 404 404 404"),
        Row(
            .put, "/v1/streams/S/comments/7/pin",
            "401 403 403 403/403/409 403/403/409 403/403/409 404/404/409 404/404/409"),
        Row(
            .delete, "/v1/streams/S/pin",
            "401 403 403 403/403/409 403/403/409 403/403/409 204/204/409 204/204/409"),
        Row(
            .put, "/v1/streams/S/silences/hal", body: #"{"seconds":60}"#,
            "401 403 403 403/403/409 403/403/409 403/403/409 204/204/409 204/204/409"),
        Row(
            .delete, "/v1/streams/S/silences/hal",
            "401 403 403 403/403/409 403/403/409 403/403/409 404/404/409 404/404/409"),
        Row(
            .post, "/v1/streams/S/reactions", body: #"{"reactions":{"heart":3}}"#,
            "401 403 403 409/200/409 409/200/409 409/200/409 409/200/409 409/200/409"),
        Row(
            .post, "/v1/streams/S/polls", body: #"{"question":"x","options":["a","b"]}"#,
            "401 403 403 409/403/409 409/403/409 409/403/409 409/201/409 409/201/409"),
        Row(.get, "/v1/streams/S/polls/8", "401 403 403 404 404 404 404 404"),
        Row(
            .put, "/v1/streams/S/polls/8/vote", body: #"{"options":[0]}"#,
            "401 403 403 409/404/409 409/404/409 409/404/409 409/404/409 409/404/409"),
        Row(
            .post, "/v1/streams/S/polls/8/close",
            "401 403 403 403/403/409 403/403/409 403/403/409 404/404/409 404/404/409"),
        // Not even a host sells gifts.
        Row(
            .put, "/v1/streams/S/gifts/k1",
            body: #"{"giver":"bob","gift":"rose","price":{"amount":1,"currency":"EUR"}}"#,
            "401 403 403 403 403 403 403 409/422/409"),
        Row(.get, "/v1/streams/S/gifts", "401 403 403 403 403 403 200 200"),
        Row(.get, "/v1/streams/S/ranks/givers", "401 403 403 200 200 200 200 200"),
        Row(
            .put, "/v1/streams/S/card", body: #"{"title":"x","link":"https://a.example"}"#,
            "401 403 403 403/403/409 403/403/409 403/403/409 204/204/409 204/204/409"),
        Row(
            .delete, "/v1/streams/S/card",
            "401 403 403 403/403/409 403/403/409 403/403/409 204/204/409 204/204/409"),
        // There is nobody live whom to invite, and so no duel.
        Row(
            .post, "/v1/duels", body: #"{"from":"S","to":"T"}"#,
            "401 403 403 403/403/409 403/403/409 403/403/409 409 409"),
        Row(.get, "/v1/duels/S.1", "401 404 403 404 404 404 404 404"),
        Row(.post, "/v1/duels/S.1/accept", "401 404 404 404 404 404 404 404"),
        Row(.post, "/v1/duels/S.1/decline", "401 404 404 404 404 404 404 404"),
        Row(.post, "/v1/duels/S.1/cancel", "401 404 404 404 404 404 404 404"),
        Row(.post, "/v1/duels/S.1/leave", "401 404 404 404 404 404 404 404"),
        Row(.post, "/v1/duels/S.1/rematch", "401 404 404 404 404 404 404 404"),
        Row(.get, "/v1/streams/S/audit", "401 403 403 403 403 403 200 200"),
        Row(.get, "/v1/streams/S/interaction", "401 403 403 200 200 200 200 200"),
        Row(.patch, "/v1/streams/S/interaction", body: #"{"slowMode":5}"#, hostOnly),
        Row(.post, "/v1/streams/S/tokens", "401 403 403 200 200 200 200 200"),
        Row(
            .post, "/whep/S?wait=30", body: "chrome-play",
            "401 403 403 409/201/409 409/201/409 201/201/409 201/201/409 201/201/409"),
        Row(
            .post, "/whip/S", body: "chrome-publish",
            "401 403 403 403 403 201/201/409 201/201/409 403/403/409"),
        Row(
            .post, "/v1/streams/S/sessions", body: "chrome-stage",
            "401 403 403 409/201/409 409/201/409 201/201/409 201/201/409 403/403/409"),
        // What operators do.
        Row(.get, "/v1/sessions", "401 403 403 403 403 403 403 200"),
        Row(.get, "/v1/sessions/00000000", "401 403 403 403 403 403 403 404"),
        Row(.get, "/v1/sessions/00000000/capture", "401 403 403 403 403 403 403 404"),
        Row(.delete, "/v1/sessions/00000000", "401 403 403 403 403 403 403 404"),
        Row(.get, "/v1/admin/statistics", "401 403 403 403 403 403 403 200"),
        // There is no picture of these; nor is anything decoded here.
        Row(.get, "/v1/streams/S/preview.webp", "401 403 403 404 404 404 404 404"),
        Row(.get, "/v1/streams/S/preview.jpg", "401 403 403 404 404 404 404 404"),
        Row(.get, "/hls/S/index.m3u8", "401 403 403 404 404 404 404 404"),
        Row(.get, "/hls/S/media.m3u8", "401 403 403 404 404 404 404 404"),
        Row(.get, "/hls/S/dvr.m3u8", "401 403 403 404 404 404 404 404"),
        // Nobody finds its name any more.
        Row(.get, "/hls/S/recordings/a-s1.m4s", "401 403 403 404 404 404 404 404"),
        Row(.get, "/hls/S/a-s1.m4s", "401 403 403 404 404 404 404 404"),
        Row(
            .put, "/v1/streams/S/pause-picture", body: "RIFF0000WEBPVP8 ",
            "401 403 403 403 403 403 503 503"),
        Row(.delete, "/v1/streams/S/pause-picture", "401 403 403 403 403 403 204 204"),
        // Of no stream: whoever has a token.
        Row(.post, "/v1/qr-codes", body: #"{"text":"x"}"#, "401 200 200 200 200 200 200 200"),
        Row(.post, "/v1/qr-codes", body: #"{"text":""}"#, "401 422 422 422 422 422 422 422"),
        // What somebody may see of it is another matter.
        Row(.get, "/v1/feed", "401 200 200 200 200 200 200 200"),
        Row(.post, "/v1/feed/sessions", body: "chrome-feed", "401 201 201 201 201 201 201 201"),
        // There is no disk for them.
        Row(.post, "/v1/streams/S/recording", "401 403 403 403 403 403 503 503"),
        Row(.delete, "/v1/streams/S/recording", "401 403 403 403 403 403 503 503"),
        Row(.post, "/v1/streams/S/clips", "401 403 403 403 403 403 503 503"),
        Row(.get, "/v1/streams/S/recordings", "401 403 403 200 200 200 200 200"),
        Row(.get, "/v1/streams/S/recordings/r1", "401 403 403 404 404 404 404 404"),
        Row(.get, "/v1/streams/S/recordings/r1/comments", "401 403 403 404 404 404 404 404"),
        Row(.delete, "/v1/streams/S/recordings/r1", "401 403 403 403 403 403 404 404"),
    ]

    @Test func `holds`() async throws {
        try await StageBench.run { bench in
            var streams = PreparedStreams()
            for row in Self.table {
                try #require(row.statuses.count == Actor.allCases.count)
                for (actor, expected) in zip(Actor.allCases, row.statuses) {
                    let perState = expected.split(separator: "/")
                    for (index, state) in [StreamState.backstage, .live, .ended].enumerated() {
                        let stream = try await streams.take(actor, state) { stream in
                            try await prepare(stream, state, bench)
                        }
                        let response = try await ask(row, actor, stream, bench)
                        let status = perState.count == 1 ? perState[0] : perState[index]
                        #expect(
                            "\(response.status)" == status, "\(row): \(actor) in \(state): \(response.text)")
                        if response.status >= 400 {
                            #expect(response.headers["content-type"] == "application/problem+json")
                        } else if row.method != .get {
                            streams.forget(actor, state)
                        }
                    }
                }
            }
        }
    }

    /// Nobody reads what a stranger writes, so they learn nothing of how it would have been read.
    @Test func `holds for strangers whatever they send`() async throws {
        try await StageBench.run { bench in
            try await prepare("s1", .live, bench)
            let foreign = try bench.token("fay", .host, stream: "other")
            for row in Self.table where row.method != .get && !row.body.hasPrefix("chrome") {
                let target = row.target.replacing("SELF", with: "x").replacing("/S", with: "/s1")
                for body in ["{", #"{"no-such-member":1}"#] {
                    let stranger = await bench.ask(row.method, target, body: body)
                    #expect(stranger.status == 401, "\(row): \(stranger.text)")
                    // Other routes are about no stream, or the body says about which.
                    guard target.hasPrefix("/v1/streams/s1") else { continue }
                    let other = await bench.ask(row.method, target, token: foreign, body: body)
                    #expect(other.status == 403, "\(row): \(other.text)")
                }
            }
        }
    }

    /// For each actor and state a stream with somebody of each kind, until a request has changed it.
    ///
    /// What only reads, and what is refused, leaves it as it was: so most rows need no stream of their own.
    private struct PreparedStreams {
        private struct Place: Hashable {
            let actor: Actor
            let state: StreamState
        }

        private var names: [Place: String] = [:]
        private var count = 0

        mutating func take(
            _ actor: Actor, _ state: StreamState, prepare: (String) async throws -> Void
        ) async throws -> String {
            let place = Place(actor: actor, state: state)
            if let name = names[place] { return name }
            count += 1
            let name = "\(actor.rawValue)-\(state.rawValue)-\(count)"
            try await prepare(name)
            names[place] = name
            return name
        }

        mutating func forget(_ actor: Actor, _ state: StreamState) {
            names[Place(actor: actor, state: state)] = nil
        }
    }

    private func ask(
        _ row: Row, _ actor: Actor, _ stream: String, _ bench: StageBench
    ) async throws -> HTTPResponse {
        let scope = actor == .foreign ? "other" : stream
        let token = actor == .anonymous ? nil : try bench.token(actor.name, actor.role, stream: scope)
        let isMedia =
            row.target.hasPrefix("/wh") || row.method == .post && row.target.hasSuffix("/sessions")
        let body =
            isMedia
            ? try Fixtures.text("Offers/\(row.body).sdp")
            : row.body.replacing(#""S""#, with: "\"\(stream)\"")
        let target = row.target.replacing("SELF", with: actor.name.isEmpty ? "x" : actor.name)
            .replacing("/S", with: "/\(stream)")
        return await bench.ask(
            row.method, target, token: token, body: body,
            type: isMedia ? "application/sdp" : "application/json")
    }

    /// A stream with somebody of each kind.
    private func prepare(_ stream: String, _ state: StreamState, _ bench: StageBench) async throws {
        let path = "/v1/streams/\(stream)"
        let host = try bench.token("ann", .host, stream: stream)
        // Nobody sends, and a slow machine takes its time.
        let body = "{\"id\":\"\(stream)\",\"hostGraceSeconds\":3600}"
        await bench.do(.post, "/v1/streams", token: host, body: body)
        for (name, role) in [("vic", Role.viewer), ("hal", .viewer), ("ivy", .viewer), ("sam", .speaker)] {
            await bench.do(
                .post, "\(path)/participants", token: try bench.token(name, role, stream: stream))
        }
        await bench.do(.post, "\(path)/hands", token: try bench.token("hal", .viewer, stream: stream))
        await bench.do(.post, "\(path)/invitations", token: host, body: #"{"participant":"ivy"}"#)
        await bench.do(.post, "\(path)/bans", token: host, body: #"{"participant":"bad"}"#)
        // Without a connection they leave after a while, and a slow machine takes its time for all rows.
        for name in ["hal", "ivy"] { try await bench.connect(name, as: .viewer, to: stream) }
        try await bench.connect("sam", as: .speaker, to: stream)
        if state != .backstage { await bench.do(.post, "\(path)/live", token: host) }
        if state == .ended { await bench.do(.post, "\(path)/end", token: host) }
    }

    @Test func `has a row for every route of the API`() {
        let asked = Set(
            Self.table.map { row -> String in
                var path = String(row.target.split(separator: "?")[0])
                for name in ["SELF", "hal", "ivy", "sam", "bad"] {
                    path = path.replacing("/\(name)", with: "/{participant}")
                }
                path = path.replacing("/S.1", with: "/{duel}").replacing("/r1", with: "/{recording}")
                    .replacing("/recordings/a-s1.m4s", with: "/recordings/{recordedFile}")
                    .replacing("/a-s1.m4s", with: "/{file}")
                    .replacing("/7", with: "/{comment}")
                    .replacing("/8", with: "/{poll}").replacing("/00000000", with: "/{session}")
                    .replacing("/k1", with: "/{key}")
                    .replacing("/restreams/1", with: "/restreams/{restream}")
                    .replacing("/givers", with: "/{rank}")
                return "\(row.method.rawValue) \(path.replacing("/S", with: "/{stream}"))"
            })
        let apart: Set = [
            // Everybody, or by tests of their own.
            "listStreams", "followStream", "makeToken", "describeServer", "health", "readiness", "metrics",
            "openAPI", "asyncAPI", "publishPreview", "playPreview",
            // Of sessions, whose names cannot be guessed.
            "publishSession", "publishTrickle", "publishEnd", "playSession", "playTrickle", "playEnd",
            "playQuality", "joinQuality", "feedQuality",
            "choosePlayEvents", "playEvents", "choosePlayLayer", "unchoosePlayLayer",
            "playGate", "openPlayGate", "joinGate", "openJoinGate", "feedGate", "openFeedGate",
            "joinSession", "joinTrickle", "joinEnd", "feedSession", "feedTrickle", "feedEnd", "peek", "focus",
            "release", "followFeed",
            // With the token in the path, as without one there.
            "showHLSByToken", "showHLSMediaByToken", "showHLSWindowByToken", "showHLSFileByToken",
            "showRecordedHLSByToken",
        ]
        #expect(apart.isSubset(of: Router.routes.map(\.operationID)))
        for route in Router.routes where !route.isOfWebClient && !apart.contains(route.operationID) {
            #expect(asked.contains("\(route.method.rawValue) \(route.pattern)"), "\(route.pattern)")
        }
    }

    /// A WebSocket has no status of its own: whoever is banned is let in, and sent away by it.
    @Test func `everybody who may see the participants may follow the stream`() async throws {
        try await StageBench.run { bench in
            for state in [StreamState.backstage, .live, .ended] {
                let stream = "follow-\(state.rawValue)"
                try await prepare(stream, state, bench)
                for actor in Actor.allCases {
                    let scope = actor == .foreign ? "other" : stream
                    let query =
                        actor == .anonymous
                        ? "" : "?access_token=\(try bench.token(actor.name, actor.role, stream: scope))"
                    let request = bench.request(.get, "/v1/streams/\(stream)/sync\(query)")
                    let refused: [Actor: Int] = [.anonymous: 401, .foreign: 403]
                    switch bench.handler.upgrade(request) {
                    case .refuse(let response):
                        #expect(response.status == refused[actor], "\(actor) in \(state)")
                    case .accept: #expect(refused[actor] == nil, "\(actor) in \(state)")
                    }
                }
            }
        }
    }

    @Test func `lets no bad token in`() async throws {
        try await StageBench.run { bench in
            try await prepare("s1", .live, bench)
            let good = try bench.token("ann", .host, stream: "s1")
            let parts = good.split(separator: ".").map(String.init)
            let none = Base64URL.encode(#"{"alg":"none","typ":"JWT"}"#.utf8)
            let claims = Base64URL.encode(
                #"{"iss":"dev","sub":"ann","role":"admin","exp":4102444800}"#.utf8)
            let stranger = TokenAuthority(keys: [
                TokenAuthority.Key(id: "dev", secret: Secret(Array("another secret of thirty-two byte".utf8)))
            ])
            let forged = stranger.mint(
                subject: try #require(ParticipantID("ann")), name: nil, scope: .all, role: .admin,
                issuedAt: 1_800_000_000, expires: 4_102_444_800)
            let bad = [
                "", "x", try bench.token("ann", .host, stream: "s1", expiresIn: -60),
                "\(none).\(parts[1]).", "\(none).\(claims).", "\(parts[0]).\(claims).\(parts[2])",
                "\(parts[0]).\(parts[1])", try #require(forged).exposed,
            ]
            for token in bad {
                for row in Self.table {
                    let target = row.target.replacing("/S", with: "/s1")
                    let response = await bench.ask(row.method, target, token: token, body: row.body)
                    #expect(response.status == 401, "\(row): \(token)")
                }
                let follow = bench.request(.get, "/v1/streams/s1/sync?access_token=\(token)")
                guard case .refuse(let response) = bench.handler.upgrade(follow) else {
                    Issue.record("\(token) follows")
                    continue
                }
                #expect(response.status == 401)
            }
        }
    }
}
