import Base
import Crypto
import Forwarding
import Peer
import Stage
import StoryFeed
import Testing
import Wire

@testable import Node

@Suite struct `A viewer of the feed` {
    private var rig = LiveRig()

    /// A waiting change is replaced by a later one, so the moment away is never reported.
    @Test mutating func `a viewer who is away for a moment is counted once`() throws {
        let show = try #require(StreamID("show"))
        rig.begin(show)
        rig.takeNews()
        let reader = FeedReader(scope: .all, sender: nil, standing: .all)
        let wish = FeedWish(reader: reader, stream: show, preload: .onSwipe)
        let id = try rig.admit(
            rig.candidate(SessionRequest(feed: wish, offer: ""), gets: [.audio, .video, .audio, .video]))
        rig.receive(.connected(id, .aeadAES128GCM, nil))
        let back = PresenceChange(session: id, place: PresenceChange.Place(stream: show, sender: nil))
        rig.change { live, _ in live.take(back) }
        let counted = rig.notices.compactMap { entry -> SessionID? in
            if case .connect(_, let session) = entry.notice { session } else { nil }
        }
        #expect(counted == [id])
    }
}
