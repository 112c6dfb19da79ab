import Base
import Foundation
import HLS
import HTTP
import Interaction
import Recordings
import Restream
import Stage
import StoryFeed
import Synchronization
import Wire

@testable import Gateway
@testable import Node

/// A server that does as it is told and remembers what it was asked.
final class FakeService: SessionService {
    struct State {
        var refusal: SessionRefusal?
        var requests: [SessionRequest] = []
        var sessions: [SessionID: (stream: StreamID, purpose: SessionRequest.Purpose)] = [:]
        var tags: [SessionID: String] = [:]
        /// Those that ended by themselves.
        var endedSessions: [SessionID: (stream: StreamID, purpose: SessionRequest.Purpose)] = [:]
        var fragments: [String] = []
        var snapshots: [StreamSnapshot] = []
        var previews: [StreamID: StoredPreview] = [:]
        var recordings: [RecordingEntry] = []
        /// Where each recording's bytes are.
        var recordingPath: String?
        var patches: [DeliveryPatch] = []
        /// What players are told.
        var view = PlayerView(isActive: true, viewers: 1)
        var choices: [EncodingChoice] = []
        var choiceRefusal: EncodingRefusal?
        var isReady = true
    }

    let state = Mutex(State())

    func createSession(_ request: SessionRequest) async throws(SessionRefusal) -> CreatedSession {
        let (refusal, id) = state.withLock { state -> (SessionRefusal?, SessionID) in
            state.requests.append(request)
            var random = SystemRandomNumberGenerator()
            let id = SessionID(using: &random)
            if state.refusal == nil {
                state.sessions[id] = (request.stream, request.purpose)
                state.tags[id] = "tag1"
            }
            return (state.refusal, id)
        }
        if let refusal { throw refusal }
        return CreatedSession(id: id, answer: "v=0\r\nanswer", entityTag: "tag1")
    }

    func entityTag(of id: SessionID) async -> String? { state.withLock { $0.tags[id] } }

    func session(_ id: SessionID) async -> (stream: StreamID, purpose: SessionRequest.Purpose)? {
        state.withLock { $0.sessions[id] }
    }

    /// A fragment with the word `new` has other credentials, one with `bad` is malformed.
    func trickle(_ id: SessionID, fragment text: String) async throws(SessionRefusal) {
        if text.contains("bad") { throw .malformedOffer("bad") }
        if text.contains("new") { throw .unsupportedOffer("other credentials") }
        state.withLock { $0.fragments.append(text) }
    }

    func restartICE(
        _ id: SessionID, fragment text: String
    ) async throws(SessionRefusal) -> (fragment: String, entityTag: String) {
        state.withLock { $0.tags[id] = "tag2" }
        return ("a=ice-ufrag:tag2\r\n", "tag2")
    }

    func prefer(_ patch: DeliveryPatch, in id: SessionID) async throws(SessionRefusal) -> JSON {
        state.withLock { $0.patches.append(patch) }
        return .object(["audioOnly": .bool(true)])
    }

    func quality(of id: SessionID) async -> JSON? { .object(["estimate": .integer(7)]) }

    func playerView(of id: SessionID, withMedia hasMedia: Bool) async -> PlayerView? {
        state.withLock { state in
            guard state.sessions[id] != nil else { return nil }
            var view = state.view
            if !hasMedia { view.media = [] }
            return view
        }
    }

    func choose(_ choice: EncodingChoice, in id: SessionID) async throws(EncodingRefusal) {
        let refusal = state.withLock { state in
            if state.choiceRefusal == nil { state.choices.append(choice) }
            return state.choiceRefusal
        }
        if let refusal { throw refusal }
    }

    func sessionToEnd(_ id: SessionID) async -> (stream: StreamID, purpose: SessionRequest.Purpose)? {
        state.withLock { $0.sessions[id] ?? $0.endedSessions[id] }
    }

    func endSession(_ id: SessionID) async -> Bool {
        state.withLock { state in
            let wasThere = state.sessions.removeValue(forKey: id) != nil
            return state.endedSessions.removeValue(forKey: id) != nil || wasThere
        }
    }

    /// Those whose snapshots have one.
    func gate(
        of stream: StreamID, before sender: Stage.Sender?
    ) async throws(StageRefusal) -> StageDetails.Gate? {
        await streamSnapshot(stream)?.gate(before: sender)
    }

    func gate(of session: SessionID) async -> JSON? { .object(["state": .string("open")]) }
    func show(_ sender: Stage.Sender, in scope: FeedReader.Scope, for session: SessionID) async {}

    // Operators are tested on a node.
    func sessionList(_ filter: SessionFilter) async -> JSON { .object(["limit": .integer(filter.limit)]) }
    func dossier(of name: String) async -> JSON? { nil }
    func endSession(named name: String) async -> Bool { false }
    func capture(_ name: String, for time: Duration) async throws(CaptureRefusal) -> [UInt8] {
        throw .unknownSession
    }
    func operatorStatistics(published: DurationHistogram, played: DurationHistogram) async -> JSON {
        .object([:])
    }

    func streamPage(
        after place: StreamSnapshot.ListOrder?, limit: Int, isOnlyLive: Bool,
        where isWanted: (StreamSnapshot) -> Bool
    ) async -> StreamDirectory.Page {
        let streams = state.withLock { $0.snapshots }.filter(isWanted)
        return StreamDirectory.Page(streams: Array(streams.prefix(limit)), isMore: streams.count > limit)
    }

    func streamSnapshot(_ id: StreamID) async -> StreamSnapshot? {
        state.withLock { $0.snapshots.first { $0.id == id } }
    }

    // Stages are tested on a node.
    func createStream(_ creation: Node.StreamCreation) async throws(StageRefusal) -> StreamSnapshot {
        throw .unknownStream
    }

    func perform(
        _ command: Stage.Command, in stream: StreamID, from sender: Stage.Sender
    ) async throws(StageRefusal) -> StageAnswer { throw .unknownStream }

    /// Knows only whom a snapshot keeps out.
    func look(at stream: StreamID, as sender: Stage.Sender) async throws(StageRefusal) -> StageAnswer {
        guard !isShutOut(sender, from: stream) else { throw .rejected(.banned) }
        throw .unknownStream
    }

    func isShutOut(_ sender: Stage.Sender, from stream: StreamID) -> Bool {
        state.withLock { $0.snapshots.first { $0.id == stream }?.shutsOut(sender) ?? false }
    }

    func linkRevocations(of stream: StreamID) async throws(StageRefusal) -> StageRecord.LinkRevocations {
        StageRecord.LinkRevocations()
    }

    func ingestStatuses(of stream: StreamID, for sender: Stage.Sender) async -> [IngestStatus] { [] }

    func bans(of stream: StreamID, as sender: Stage.Sender) async throws(StageRefusal) -> JSON {
        throw .unknownStream
    }

    func overview(of stream: StreamID) async throws(StageRefusal) -> JSON { throw .unknownStream }

    func perform(
        _ command: Interaction.Command, in stream: StreamID, from sender: Stage.Sender
    ) async throws(StageRefusal) -> Interaction.Reply { throw .unknownStream }

    func comments(
        of stream: StreamID, before: Int?, after: Int?, limit: Int, as sender: Stage.Sender?
    ) async throws(StageRefusal) -> JSON { throw .unknownStream }

    func audit(of stream: StreamID, as sender: Stage.Sender) async throws(StageRefusal) -> JSON {
        throw .unknownStream
    }

    func poll(_ number: Int, of stream: StreamID, as sender: Stage.Sender?) async throws(StageRefusal) -> JSON
    {
        throw .unknownStream
    }

    func gifts(
        of stream: StreamID, after number: Int, limit: Int, as sender: Stage.Sender
    ) async throws(StageRefusal) -> JSON { throw .unknownStream }

    func rank(
        _ name: RankName, of stream: StreamID, period: RankPeriod, as sender: Stage.Sender?
    ) async throws(StageRefusal) -> JSON {
        throw .unknownStream
    }

    func perform(
        _ command: DuelSide.Command, in stream: StreamID, from sender: Stage.Sender
    ) async throws(StageRefusal) -> JSON { throw .unknownStream }

    func sides(of duel: DuelID) async throws(StageRefusal) -> (from: StreamID, to: StreamID) {
        throw .interaction(.unknownDuel)
    }

    func duel(_ duel: DuelID, of stream: StreamID, as sender: Stage.Sender?) async throws(StageRefusal)
        -> JSON
    {
        throw .interaction(.unknownDuel)
    }

    func interactionSettings(of stream: StreamID, as sender: Stage.Sender?) async throws(StageRefusal) -> JSON
    {
        throw .unknownStream
    }

    func follow(
        _ stream: StreamID, as sender: Stage.Sender?, since: UInt64?, until expiry: WallTime?,
        _ end: any SyncFollower
    ) async throws(StageRefusal) -> @Sendable () async -> Void { throw .unknownStream }

    func adopt(_ id: SessionID, in stream: StreamID, as sender: Stage.Sender) async {}

    func preview(of stream: StreamID) async -> StoredPreview? { state.withLock { $0.previews[stream] } }

    // It has no disk for pause pictures and recordings.
    func setPausePicture(_ file: [UInt8]?, of stream: StreamID) async -> Bool { file == nil }

    func record(_ stream: StreamID) async throws(RecordingRefusal) -> (entry: RecordingEntry, isNew: Bool) {
        throw .unavailable
    }

    func stopRecording(_ stream: StreamID) async throws(RecordingRefusal) -> RecordingEntry {
        throw .unavailable
    }

    func makeClip(of stream: StreamID, seconds: Int, title: String?) async throws(ClipRefusal)
        -> RecordingEntry
    { throw .unavailable }

    func recordings(of stream: StreamID) async -> [RecordingEntry] {
        state.withLock { $0.recordings }.filter { $0.stream == stream.description }
    }

    func comments(on recording: RecordingEntry, after number: Int, limit: Int) async throws(StageRefusal)
        -> JSON
    { throw .unknownStream }

    func removeRecording(_ id: String, of stream: StreamID) async throws(RecordingRefusal) {
        throw .unknownRecording
    }

    func fragments(of recording: RecordingEntry) async throws(RecordingRefusal) -> FragmentIndex {
        guard recording.state == .ended else { throw .underWay }
        guard let path = state.withLock({ $0.recordingPath }),
            let bytes = FileManager.default.contents(atPath: path),
            let index = FragmentIndex(ByteSource(Array(bytes)))
        else { throw .notFragmented }
        return index
    }

    func readingPath(of recording: RecordingEntry) -> String? { state.withLock { $0.recordingPath } }

    /// Of every stream but those that are called `off`, `forbidden`, and `late`, for which the server has no time left.
    func hlsMultivariantPlaylist(
        of stream: StreamID, _ names: HLSNames, listsAll: Bool
    ) async throws(HLSRefusal) -> String {
        guard stream.description != "off" else { throw .notLive }
        guard stream.description != "forbidden" else { throw .off }
        guard stream.description != "late" else { throw .stopping }
        return "#EXTM3U\n\(names.media)\n" + (listsAll ? "all\n" : "")
    }

    func hlsMediaPlaylist(
        of stream: StreamID, uri: String, _ query: PlaylistQuery, reachesBack: Bool
    ) async throws(HLSRefusal) -> String {
        guard !reachesBack || stream.description != "short" else { throw .noWindow }
        guard stream.description != "late" else { throw .stopping }
        if let position = query.position, position.sequenceNumber > 99 { throw .tooFarAhead }
        return "#EXTM3U\n#\(query.rendition) \(uri)\(reachesBack ? " and before" : "")\n"
    }

    func hlsFile(named name: String, of stream: StreamID) async throws(HLSRefusal) -> HLSFile {
        guard stream.description != "late" else { throw .stopping }
        if name == "a-s0.m4s", let path = state.withLock({ $0.recordingPath }) { return .stored(path: path) }
        guard name == "a-s1.m4s" || name == "a-i0.mp4" else { throw .unknownFile }
        return .bytes([1, 2, 3])
    }

    func hlsFileAtHand(named name: String, of stream: StreamID) -> [UInt8]? {
        name == "a-s1.m4s" && stream.description != "s3" ? [1, 2, 3] : nil
    }

    func addRestream(
        to address: RestreamAddress, key: Secret<String>, of stream: StreamID
    ) async throws(RestreamRefusal) -> RestreamStatus { throw .unavailable }

    func restreams(of stream: StreamID) async throws(RestreamRefusal) -> [RestreamStatus] {
        throw .unavailable
    }

    func removeRestream(_ number: Int, of stream: StreamID) async throws(RestreamRefusal) { throw .unknown }

    func feedPage(
        limit: Int, after cursor: FeedCursor?, for reader: FeedReader
    ) async throws(CursorRefusal) -> FeedPage { throw .expired }

    func followFeed(
        _ reader: FeedReader, limit: Int, until expiry: WallTime?, _ end: any SyncFollower
    ) async -> FeedFollowing { FeedFollowing(watch: { _ in }, stop: {}) }

    func perform(
        _ message: FeedMessage, request: UInt32?, in id: SessionID
    ) async throws(FeedRefusal) -> JSON {
        throw .noSession
    }

    var isReady: Bool { get async { state.withLock { $0.isReady } } }

    func metrics(published: DurationHistogram, played: DurationHistogram) async -> [Metric] {
        [Metric("fake", .gauge, "A number.", 42)]
    }
}

/// The web client, read once for all tests: its document alone is 370 kB of JSON.
enum LoadedPages {
    static let all = Result { try WebPages.load() }
}

/// A handler on a fake service, and the requests to put to it.
struct Bench {
    static let now = 1_800_000_000
    let service = FakeService()
    let authority = TokenAuthority(keys: [
        TokenAuthority.Key(id: "dev", secret: Secret(Array("0123456789abcdef0123456789abcdef".utf8)))
    ])
    let handler: GatewayHandler

    /// - Parameters:
    ///   - now: seconds since 1970.
    ///   - elapsed: the clock for durations.
    init(
        _ change: (inout GatewaySettings) -> Void = { _ in },
        now: @escaping @Sendable () -> Int = { Bench.now },
        elapsed: @escaping @Sendable () -> MonotonicTime = { .zero }
    ) throws {
        var settings = GatewaySettings()
        settings.viewers = .everyone
        settings.isDevelopment = true
        change(&settings)
        handler = GatewayHandler(
            service: service, authority: authority, settings: settings, pages: try LoadedPages.all.get(),
            counters: HTTPCounters(), now: now, elapsed: elapsed)
    }

    func token(
        _ role: Role, stream: String = "s1", tiers: Set<String> = [], expires: Int = Bench.now + 60
    ) throws -> String {
        guard let subject = ParticipantID("ann"), let scope = Token.Scope(stream, for: role),
            let token = authority.mint(
                subject: subject, name: "Ann", scope: scope, role: role, tiers: tiers, issuedAt: Self.now,
                expires: expires)
        else { throw CocoaError(.coderInvalidValue) }
        return token.exposed
    }

    func ask(
        _ method: HTTPMethod, _ target: String, token: String? = nil, _ headers: HTTPHeaders = [:],
        body: String = ""
    ) async -> HTTPResponse {
        await handler.respond(to: request(method, target, token: token, headers, body: body))
    }

    func request(
        _ method: HTTPMethod, _ target: String, token: String? = nil, _ headers: HTTPHeaders = [:],
        body: String = ""
    ) -> HTTPRequest {
        var request = HTTPRequest.made(method, target, token: token, headers, body: body)
        if request.headers["host"] == nil { request.headers.add("Host", "localhost:8080") }
        return request
    }

    /// The path of a new session.
    func open(_ endpoint: String) async throws -> String {
        let response = await ask(
            .post, "/\(endpoint)/s1", token: try token(.host), ["Content-Type": "application/sdp"],
            body: "v=0")
        guard let location = response.headers["location"] else { throw CocoaError(.coderValueNotFound) }
        return location
    }
}

extension HTTPResponse {
    var text: String { String(decoding: body, as: UTF8.self) }

    func json<Value: Decodable>(_ type: Value.Type) throws -> Value {
        try JSONDecoder().decode(type, from: Data(body))
    }
}

extension WebFile {
    func json<Value: Decodable>(_ type: Value.Type) throws -> Value {
        try JSONDecoder().decode(type, from: Data(bytes))
    }
}
