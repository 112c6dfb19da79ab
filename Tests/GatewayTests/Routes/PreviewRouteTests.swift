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

    @Test func `that nobody made is not there`() async throws {
        #expect(await get(try bench(), "/v1/streams/s2/preview.webp").status == 404)
    }
}
