import Base
import HLS
import HTTP
import Node
import Stage

/// HLS of live streams, for televisions, old browsers, and caches in front of the server.
///
/// A viewer's token may be in the path: `/hls/{stream}/t/{token}/index.m3u8`. There caches distinguish it from other
/// viewers' tokens, and a playlist's relative addresses preserve it. Files with a name of their own never change, so
/// caches may keep them.
/// - Source: RFC 8216bis §6.2.5 (blocking requests), §B.1 (caches).
extension GatewayHandler {
    /// RFC 8216 §4.
    private static let playlistType = "application/vnd.apple.mpegurl"
    /// Names that the multivariant playlist refers to, as in `RouteTable.swift`.
    private static let names = HLSNames(media: "media.m3u8", window: "dvr.m3u8")

    /// `GET /hls/{stream}/index.m3u8`: the multivariant playlist.
    ///
    /// With `?renditions=all` it also lists renditions that not every player supports.
    func showHLS(_ call: Call) async throws -> HTTPResponse {
        let (stream, audience) = try await hlsStream(call)
        let renditions = call.request.query("renditions")
        guard renditions == nil || renditions == "all" else {
            throw Problem(400, "malformed-query", "renditions must be all, or left out.")
        }
        do throws(HLSRefusal) {
            let text = try await service.hlsMultivariantPlaylist(
                of: stream, Self.names, listsAll: renditions != nil)
            return Self.playlist(text, for: audience, lifetime: 1)
        } catch {
            // A stream that has ended continues as its recording under the same address.
            guard [.notLive, .unavailable, .stopping].contains(error),
                let response = try await latestRecording(call, of: stream)
            else { throw error }
            return response
        }
    }

    /// `GET /hls/{stream}/media.m3u8`: the media playlist of the source, or of another rendition with `?rendition=`.
    ///
    /// Blocks until the segment or part that the query names is in it.
    func showHLSMedia(_ call: Call) async throws -> HTTPResponse {
        try await showMedia(call, reachesBack: false)
    }

    /// `GET /hls/{stream}/dvr.m3u8`: the source's media playlist, reaching back `dvrSeconds`.
    func showHLSWindow(_ call: Call) async throws -> HTTPResponse {
        try await showMedia(call, reachesBack: true)
    }

    /// Parses the delivery directives and returns a media playlist.
    /// - Source: RFC 8216bis §6.2.5.
    private func showMedia(_ call: Call, reachesBack: Bool) async throws -> HTTPResponse {
        let (stream, audience) = try await hlsStream(call)
        let request = call.request
        let query: PlaylistQuery
        do throws(PlaylistQuery.Failure) {
            query = try PlaylistQuery(
                sequenceNumber: request.query("_HLS_msn"), part: request.query("_HLS_part"),
                skip: request.query("_HLS_skip"), rendition: reachesBack ? nil : request.query("rendition"))
        } catch {
            let words =
                switch error {
                case .partAlone: "_HLS_part requires _HLS_msn."
                case .malformed: "_HLS_msn and _HLS_part must be numbers of up to 12 digits."
                case .unknownRendition: "rendition must be source, original, low or sound."
                }
            throw Problem(400, "malformed-query", words)
        }
        let text = try await service.hlsMediaPlaylist(
            of: stream, uri: Self.names.media, query, reachesBack: reachesBack)
        // The answer to a blocking request remains valid for as long as any player may ask for it.
        return Self.playlist(text, for: audience, lifetime: query.position == nil ? 1 : 6)
    }

    /// `GET /hls/{stream}/{file}`: a part, segment or initialization segment.
    func showHLSFile(_ call: Call) async throws -> HTTPResponse {
        let stream = try call.stream
        let sender = try hlsAccess(call).requireViewer(of: stream)?.sender(in: stream)
        // The next names can be guessed from those before, so it is not enough to refuse playlists.
        if let sender, service.isShutOut(sender, from: stream) {
            try await requireAdmitted(sender, to: stream)
        }
        let audience = try await audience(of: stream, call, sender)
        let name = call.parameters["file"] ?? ""
        let found = try await service.hlsFile(named: name, of: stream)
        var response = Self.file(named: name, for: audience)
        switch found {
        case .bytes(let bytes): response.body = bytes
        // A segment of the window, on the disk.
        case .stored(let path):
            guard let file = HTTPFile(path: path, choose: { 0..<$0.bytes }) else {
                throw HLSRefusal.unknownFile
            }
            response.file = file
        }
        return response
    }

    /// The same from memory, for a live stream without a gate; nil in any other case.
    ///
    /// Runs on the service thread. Someone who is banned, or came by a revoked link, is left to `showHLSFile`.
    func hlsFileAtHand(_ call: Call) throws(Problem) -> HTTPResponse? {
        let stream = try call.stream
        let sender = try hlsAccess(call).requireViewer(of: stream)?.sender(in: stream)
        if let sender, service.isShutOut(sender, from: stream) { return nil }
        let name = call.parameters["file"] ?? ""
        guard let bytes = service.hlsFileAtHand(named: name, of: stream) else { return nil }
        let isAsker = settings.viewers != .everyone && isToldByHeader(call, sender)
        var response = Self.file(named: name, for: isAsker ? .asker : .everybody)
        response.body = bytes
        return response
    }

    /// The response for a segment, part or initialization segment, without the body.
    private static func file(named name: String, for audience: Audience) -> HTTPResponse {
        HTTPResponse(
            status: 200,
            headers: [
                "Content-Type": name.hasSuffix(".mp4") ? "video/mp4" : "video/iso.segment",
                "Cache-Control": "\(audience.rawValue), max-age=60, immutable",
                "X-Content-Type-Options": "nosniff", "Cross-Origin-Resource-Policy": "cross-origin",
            ])
    }

    // MARK: Who and what

    /// Whether the viewer is identified by a header field, which is not part of a cache's key, and not by the path.
    private func isToldByHeader(_ call: Call, _ sender: Stage.Sender?) -> Bool {
        call.parameters["token"] == nil && sender != nil
    }

    /// Who may receive a cached copy; the value is a directive of `Cache-Control`.
    enum Audience: String {
        /// Any client with the same address.
        case everybody = "public"
        /// Only the client that has sent the request: shared caches must not store it (RFC 9111 §5.2.2.7).
        case asker = "private"
    }

    /// Refuses a sender behind the stream's gate, without free seconds, and decides about caching.
    ///
    /// A response that was opened by a header field is private if the stream has a gate or viewers need a token,
    /// since `public` would allow a shared cache to store it (RFC 9111 §3.5). With the token in the path each viewer
    /// has an address of their own, so caching is safe.
    func audience(
        of stream: StreamID, _ call: Call, _ sender: Stage.Sender?
    ) async throws -> Audience {
        try await requireOpenGate(of: stream, before: sender)
        guard isToldByHeader(call, sender) else { return .everybody }
        guard settings.viewers == .everyone else { return .asker }
        return try await service.gate(of: stream, before: nil) == nil ? .everybody : .asker
    }

    /// The stream in the path, after all checks, and who may receive a cached copy.
    private func hlsStream(_ call: Call) async throws -> (stream: StreamID, Audience) {
        let (stream, sender) = try await hlsViewer(call)
        return (stream, try await audience(of: stream, call, sender))
    }

    /// The stream in the path and the viewer, after all checks except for the gate.
    func hlsViewer(_ call: Call) async throws -> (stream: StreamID, sender: Stage.Sender?) {
        let stream = try call.stream
        let token = try hlsAccess(call).requireViewer(of: stream)
        let sender = token?.sender(in: stream)
        if let sender { try await requireAdmitted(sender, to: stream) }
        return (stream, sender)
    }

    /// Access by the token in the path; without one there, by the request's own.
    private func hlsAccess(_ call: Call) -> Access {
        guard let token = call.parameters["token"] else { return call.access }
        var request = call.request
        request.headers.set("Authorization", "Bearer \(token)")
        return Access(
            request: request, authority: call.access.authority, settings: settings, now: call.access.now)
    }

    /// A playlist that caches may keep.
    ///
    /// A shared cache may serve it for one more second while it fetches the next one; otherwise all requests of that
    /// moment would reach this server. A browser's own cache gets a second less, so that the times do not add up.
    /// - Parameter lifetime: seconds, at least 1.
    /// - Source: RFC 5861 §3 (`stale-while-revalidate`), RFC 9111 §5.2.2.10 (`s-maxage`).
    static func playlist(_ text: String, for audience: Audience, lifetime: Int) -> HTTPResponse {
        let shared = "max-age=\(lifetime - 1), s-maxage=\(lifetime), stale-while-revalidate=1"
        let lasting = audience == .everybody ? shared : "max-age=\(lifetime)"
        return HTTPResponse(
            status: 200,
            headers: [
                "Content-Type": playlistType, "Cache-Control": "\(audience.rawValue), \(lasting)",
                "X-Content-Type-Options": "nosniff", "Cross-Origin-Resource-Policy": "cross-origin",
            ], body: Array(text.utf8))
    }
}
