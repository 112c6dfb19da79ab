import Base
import Stage
import Testing

@testable import Node

@Suite struct `A stream's description` {
    private let eve: ParticipantID
    private var stream: StreamSnapshot

    init() throws {
        eve = try #require(ParticipantID("eve"))
        stream = StreamSnapshot(waitingFor: try #require(StreamID("show")))
        stream.preview = StreamPreview(
            width: 360, height: 203, capturedAt: WallTime(milliseconds: 5_000), blurHash: "L", url: "/p")
    }

    private func seen(by sender: Stage.Sender?) -> JSON? { stream.json(for: sender)["preview"]?["url"] }

    @Test func `has the preview for everyone who is let in`() {
        #expect(seen(by: nil) == .string("/p"))
        #expect(seen(by: Stage.Sender(id: eve, authority: .viewer)) == .string("/p"))
    }

    @Test mutating func `has no preview for somebody who is banned, unless an admin`() {
        stream.banned[eve] = WallTime(milliseconds: 1)
        let (viewer, admin) = (
            seen(by: Stage.Sender(id: eve, authority: .viewer)),
            seen(by: Stage.Sender(id: eve, authority: .admin))
        )
        #expect(viewer == nil)
        #expect(admin == .string("/p"))
    }

    @Test mutating func `has no preview for somebody whose link was revoked`() {
        stream.linkRevocations.viewers = WallTime(milliseconds: 9_000)
        func shown(issued: Int) -> JSON? {
            let link = Stage.Link(makesSpeakers: false, issued: issued)
            return seen(by: Stage.Sender(id: eve, authority: .viewer, link: link))
        }
        let (old, new) = (shown(issued: 9), shown(issued: 10))
        #expect(old == nil)
        #expect(new == .string("/p"))
    }
}
