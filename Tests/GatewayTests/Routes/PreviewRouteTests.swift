import Base
import HTTP
import Stage
import Synchronization
import Testing
import Transcoder

@testable import Gateway
@testable import Node

@Suite struct `A stream's preview` {
    private static let taken = WallTime(milliseconds: Int64(Bench.now) * 1_000)
    private let show: StreamID
    private let keys = SigningKeys([TokenAuthority.Key(id: "k", secret: Secret([7]))])

    init() throws {
        show = try #require(StreamID("s1"))
    }

    private func bench(isPublic: Bool = true) throws -> Bench {
        let keys = isPublic ? nil : keys
        let bench = try Bench { settings in
            settings.viewers = isPublic ? .everyone : .token
            settings.paths = ResourcePaths(previews: PreviewAddress(keys: keys))
        }
        let about = StreamPreview(
            width: 360, height: 203, capturedAt: Self.taken, blurHash: "L",
            url: PreviewAddress(keys: keys).url(of: show, takenAt: Self.taken))
        let picture = PreviewPicture(width: 360, height: 203, blurHash: "L", webP: [1, 2], jpeg: [3])
        bench.service.state.withLock { $0.previews[show] = StoredPreview(picture, about: about) }
        return bench
    }

    private func get(
        _ bench: Bench, _ path: String = "/v1/streams/s1/preview.webp", _ headers: HTTPHeaders = [:]
    ) async -> HTTPResponse {
        let parts = path.split(separator: "?")
        let query = (parts.count > 1 ? parts[1].split(separator: "&") : []).map { item in
            let pair = item.split(separator: "=")
            return HTTPRequest.QueryItem(name: String(pair[0]), value: String(pair[1]))
        }
        return await bench.handler.respond(
            to: HTTPRequest(method: .get, path: String(parts[0]), query: query, headers: headers))
    }

    @Test func `is a file that may be kept for a few seconds`() async throws {
        let bench = try bench()
        let response = await get(bench)
        #expect(response.status == 200)
        #expect(response.body == [1, 2])
        #expect(response.headers["content-type"] == "image/webp")
        #expect(response.headers["cache-control"] == "public, max-age=5")
        #expect(response.headers["last-modified"] == "Fri, 15 Jan 2027 08:00:00 GMT")
        let jpeg = await get(bench, "/v1/streams/s1/preview.jpg")
        #expect(jpeg.body == [3])
        #expect(jpeg.headers["content-type"] == "image/jpeg")
        #expect(jpeg.headers["etag"] != response.headers["etag"])
    }

    @Test func `is not sent to somebody who has it`() async throws {
        let bench = try bench()
        let tag = try #require(await get(bench).headers["etag"])
        #expect(await get(bench, "/v1/streams/s1/preview.webp", ["If-None-Match": tag]).status == 304)
        #expect(await get(bench, "/v1/streams/s1/preview.webp", ["If-None-Match": "\"x\""]).status == 200)
        for (time, status) in [
            ("Fri, 15 Jan 2027 08:00:00 GMT", 304), ("Fri, 15 Jan 2027 07:59:59 GMT", 200),
            ("yesterday", 200),
        ] {
            let response = await get(bench, "/v1/streams/s1/preview.webp", ["If-Modified-Since": time])
            #expect(response.status == status)
        }
        // The tag wins.
        let both: HTTPHeaders = [
            "If-None-Match": "\"x\"", "If-Modified-Since": "Fri, 15 Jan 2027 08:00:00 GMT",
        ]
        #expect(await get(bench, "/v1/streams/s1/preview.webp", both).status == 200)
    }

    @Test func `is shown to whoever has its signed address, or a token`() async throws {
        let bench = try bench(isPublic: false)
        #expect(await get(bench).status == 401)
        let url = PreviewAddress(keys: keys).url(of: show, takenAt: Self.taken)
        let response = await get(bench, url)
        #expect(response.status == 200)
        #expect(response.headers["cache-control"] == "private, max-age=5")
        #expect(await get(bench, url.replacing("preview.webp", with: "preview.jpg")).body == [3])
        #expect(await get(bench, url.replacing("ttl=86400", with: "ttl=86401")).status == 401)
        let other = url.replacing("/s1/", with: "/s2/")
        #expect(await get(bench, other).status == 401)
        let token = try bench.token(.viewer)
        #expect(
            await get(bench, "/v1/streams/s1/preview.webp", ["Authorization": "Bearer \(token)"]).status
                == 200)
    }

    /// It is not known whose address it is, and they may have been banned since.
    @Test func `is shown by an earlier one's address for a minute, and by its own for longer`() async throws {
        let bench = try bench(isPublic: false)
        let (addresses, token) = (PreviewAddress(keys: keys), try bench.token(.viewer))
        func earlier(by seconds: Int) -> WallTime {
            WallTime(milliseconds: Int64(Bench.now - seconds) * 1_000)
        }
        let recent = addresses.url(of: show, takenAt: earlier(by: PreviewAddress.overlap - 1))
        #expect(await get(bench, recent).status == 200)
        let old = earlier(by: PreviewAddress.overlap)
        let outdated = addresses.url(of: show, takenAt: old)
        #expect(await get(bench, outdated).status == 401)
        #expect(await get(bench, outdated.replacing("preview.webp", with: "preview.jpg")).status == 401)
        #expect(await get(bench, outdated, ["Authorization": "Bearer \(token)"]).status == 200)
        // Nothing newer has come.
        let about = StreamPreview(width: 360, height: 203, capturedAt: old, blurHash: "L", url: outdated)
        let picture = PreviewPicture(width: 360, height: 203, blurHash: "L", webP: [4], jpeg: [5])
        bench.service.state.withLock { $0.previews[show] = StoredPreview(picture, about: about) }
        #expect(await get(bench, outdated).body == [4])
    }

    /// The addresses of the preview in the stream's description and in the list; nil where there is none.
    private func named(_ bench: Bench, to token: String) async throws -> [JSON?] {
        let one = try await bench.ask(.get, "/v1/streams/s1", token: token).json(JSON.self)
        let all = try await bench.ask(.get, "/v1/streams", token: token).json(JSON.self)
        guard case .array(let streams)? = all["streams"] else { return [] }
        return ([one] + streams).map { $0["preview"]?["url"] }
    }

    @Test(arguments: [false, true]) func `is not named to those who are banned`(isPublic: Bool) async throws {
        let bench = try bench(isPublic: isPublic)
        let (viewer, admin) = (try bench.token(.viewer), try bench.token(.admin))
        var stream = StreamSnapshot(waitingFor: show)
        stream.state = .live
        stream.createdAt = Self.taken
        stream.preview = bench.service.state.withLock { $0.previews[show]?.about }
        let address = JSON.string(try #require(stream.preview?.url))
        let open = stream
        bench.service.state.withLock { $0.snapshots = [open] }
        let before = try await named(bench, to: viewer)
        #expect(before == [address, address])
        let ann = try #require(ParticipantID("ann"))
        stream.banned[ann] = Self.taken
        let closed = stream
        bench.service.state.withLock { $0.snapshots = [closed] }
        let after = try await named(bench, to: viewer)
        #expect(after == [nil, nil])
        // An admin of that name is not kept out.
        let shown = try await named(bench, to: admin)
        #expect(shown == [address, address])
    }

    @Test func `that nobody made is not there`() async throws {
        #expect(await get(try bench(), "/v1/streams/s2/preview.webp").status == 404)
    }
}
