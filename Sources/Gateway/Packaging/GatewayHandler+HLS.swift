import Base
import HLS
import HTTP
import Node
import Stage

/// HLS, for televisions, old browsers, and caches in front of the server.
///
/// A viewer's token stands in the path, where caches tell it from others' and relative addresses keep it:
/// `/hls/{stream}/t/{token}/index.m3u8`. What has a name of its own never changes, so anything may keep it.
/// - Source: RFC 8216bis §6.2.5 (what blocks), §B.1 (caches).
extension GatewayHandler {
    private static let playlistType = "application/vnd.apple.mpegurl"
    private static let names = HLSNames(media: "media.m3u8", window: "dvr.m3u8")

    /// `GET /hls/{stream}/index.m3u8`; with `?renditions=all` also of what not every player takes.
    func showHLS(_ call: Call) async throws -> HTTPResponse {
        let (stream, audience) = try await hlsStream(call)
        let renditions = call.request.query("renditions")
        guard renditions == nil || renditions == "all" else {
            throw Problem(400, "malformed-query", "renditions is all, or left out.")
        }
        do throws(HLSRefusal) {
            let text = try await service.hlsMultivariantPlaylist(
                of: stream, Self.names, listsAll: renditions != nil)
            return Self.playlist(text, for: audience, lifetime: 1)
        } catch {
            // Once nothing is kept of it any more there is its recording.
            guard error == .notLive || error == .unavailable,
                let response = try await latestRecording(call, of: stream)
            else { throw error }
            return response
        }
    }

    /// `GET /hls/{stream}/media.m3u8`, which blocks until what the query wants is in it; of the source, or of another
    /// rendition with `?rendition=`.
    func showHLSMedia(_ call: Call) async throws -> HTTPResponse {
        try await showMedia(call, reachesBack: false)
    }

    /// `GET /hls/{stream}/dvr.m3u8`: the source's, from as far back as the stream's `dvrSeconds` say.
    func showHLSWindow(_ call: Call) async throws -> HTTPResponse {
        try await showMedia(call, reachesBack: true)
    }

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
                case .partAlone: "_HLS_part needs _HLS_msn."
                case .malformed: "_HLS_msn and _HLS_part are numbers of up to 12 digits."
                case .unknownRendition: "rendition is source, original, low or sound."
                }
            throw Problem(400, "malformed-query", words)
        }
        let text = try await service.hlsMediaPlaylist(
            of: stream, uri: Self.names.media, query, reachesBack: reachesBack)
        // What was waited for stays right for as long as anybody may ask for it.
        return Self.playlist(text, for: audience, lifetime: query.position == nil ? 1 : 6)
    }

    /// `GET /hls/{stream}/{file}`: a part, segment or initialization segment.
    func showHLSFile(_ call: Call) async throws -> HTTPResponse {
        let stream = try call.stream
        let token = try hlsAccess(call).requireViewer(of: stream)
        let audience = try await audience(of: stream, call, token?.sender(in: stream))
        let name = call.parameters["file"] ?? ""
        let found = try await service.hlsFile(named: name, of: stream)
        var response = Self.file(named: name, for: audience)
        switch found {
        case .bytes(let bytes): response.body = bytes
        case .stored(let path):
            guard let file = HTTPFile(path: path, choose: { 0..<$0.bytes }) else {
                throw HLSRefusal.unknownFile
            }
            response.file = file
        }
        return response
    }

    /// The same, where it lies in memory and no gate stands before it; nil for any other.
    func hlsFileAtHand(_ call: Call) throws(Problem) -> HTTPResponse? {
        let stream = try call.stream
        let token = try hlsAccess(call).requireViewer(of: stream)
        let name = call.parameters["file"] ?? ""
        guard let bytes = service.hlsFileAtHand(named: name, of: stream) else { return nil }
        let isAsker = settings.viewers != .everyone && isToldByHeader(call, token?.sender(in: stream))
        var response = Self.file(named: name, for: isAsker ? .asker : .everybody)
        response.body = bytes
        return response
    }

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

    /// Whether a header, which caches know nothing of, tells who somebody is.
    private func isToldByHeader(_ call: Call, _ sender: Stage.Sender?) -> Bool {
        call.parameters["token"] == nil && sender != nil
    }

    /// Who may be given what a cache has kept.
    enum Audience: String {
        case everybody = "public"
        case asker = "private"
    }

    /// Refuses who is behind the stream's gate: of HLS nothing is free.
    ///
    /// What stands behind one no cache gives to others, nor what takes a token where viewers need one, unless a token
    /// in the path tells it apart: `public` allows a shared cache to keep what the header opened (RFC 9111 §3.5).
    func audience(
        of stream: StreamID, _ call: Call, _ sender: Stage.Sender?
    ) async throws -> Audience {
        try await requireOpenGate(of: stream, before: sender)
        guard isToldByHeader(call, sender) else { return .everybody }
        guard settings.viewers == .everyone else { return .asker }
        return try await service.gate(of: stream, before: nil) == nil ? .everybody : .asker
    }

    /// The stream, asked about by somebody who may watch it.
    private func hlsStream(_ call: Call) async throws -> (stream: StreamID, Audience) {
        let (stream, sender) = try await hlsViewer(call)
        return (stream, try await audience(of: stream, call, sender))
    }

    /// Somebody who may watch a stream, apart from its gate.
    func hlsViewer(_ call: Call) async throws -> (stream: StreamID, sender: Stage.Sender?) {
        let stream = try call.stream
        let token = try hlsAccess(call).requireViewer(of: stream)
        let sender = token?.sender(in: stream)
        if let sender {
            do throws(StageRefusal) {
                _ = try await service.look(at: stream, as: sender)
            } catch {
                guard error == .unknownStream else { throw error }
            }
        }
        return (stream, sender)
    }

    /// What whoever shows the path's token may do; where there is none in it, it may be in the header.
    private func hlsAccess(_ call: Call) -> Access {
        guard let token = call.parameters["token"] else { return call.access }
        var request = call.request
        request.headers.set("Authorization", "Bearer \(token)")
        return Access(
            request: request, authority: call.access.authority, settings: settings, now: call.access.now)
    }

    /// A playlist that holds for so many seconds.
    ///
    /// A cache of many viewers gives them what it has for a second more, while it asks for the next: else all who come
    /// in that moment are passed on. A browser adds no second of its own to that.
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
