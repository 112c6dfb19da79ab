import Base
import HTTP
import Node
import Testing

@testable import Gateway
@testable import Recordings

@Suite struct `Paths of resources` {
    @Test func `lead to their routes`() throws {
        let stream = try #require(StreamID("show"))
        var recording = RecordingEntry(id: "r1", stream: stream, part: 1, startedAt: 1)
        (recording.state, recording.fileExtension) = (.ended, "mp4")
        let playlist = ResourcePaths(previews: PreviewAddress(keys: nil)).playlist(of: recording)
        let paths: [(HTTPMethod, String, String)] = [
            (.get, ResourcePaths.stream(stream), "showStream"),
            (.get, ResourcePaths.recording("r1.webm", of: stream), "showRecording"),
            (.get, try #require(playlist), "showRecordedHLS"),
            (.get, ResourcePaths.preview(of: stream) + ".webp", "previewWebP"),
            (.get, ResourcePaths.preview(of: stream) + ".jpg", "previewJPEG"),
            (.post, ResourcePaths.sessions(.publish, of: stream), "publish"),
            (.post, ResourcePaths.sessions(.play, of: stream), "play"),
            (.post, ResourcePaths.sessions(.stage, of: stream), "join"),
            (.post, ResourcePaths.sessions(.feed, of: .feed), "enterFeed"),
        ]
        for (method, path, operationID) in paths {
            guard case .found(let route, let parameters) = Router.route(method, path) else {
                Issue.record("nothing answers at \(path)")
                continue
            }
            #expect(route.operationID == operationID)
            #expect(parameters["stream"].map { $0 == "show" } ?? (operationID == "enterFeed"))
        }
    }
}
