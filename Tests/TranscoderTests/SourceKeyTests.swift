import Base
import TestSupport
import Testing
import Transcoder

@Suite struct SourceKeyTests {
    private let show: StreamID
    private let ann: SessionID
    private let bob: SessionID

    init() throws {
        var random = SeededGenerator(seed: 1)
        show = try #require(StreamID("show"))
        (ann, bob) = (SessionID(using: &random), SessionID(using: &random))
    }

    @Test func `lets be recorded what is not decoded any more`() {
        // The transcoder's deaths are counted by these.
        #expect(SourceKey(.recording(ann, show)) != SourceKey(.preview(ann, show)))
        #expect(SourceKey(.recording(ann, show)) != SourceKey(.composition(ann, mid: "1")))
        #expect(SourceKey(.recording(nil, show)) != SourceKey(.preview(nil, show)))
    }

    @Test func `is one for each source`() {
        #expect(SourceKey(.recording(ann, show)) == SourceKey(.recording(ann, show)))
        #expect(SourceKey(.recording(ann, show)) != SourceKey(.recording(bob, show)))
        #expect(SourceKey(.recording(ann, show)) != SourceKey(.recording(nil, show)))
        #expect(SourceKey(.composition(ann, mid: "1")) != SourceKey(.composition(ann, mid: "2")))
        #expect(SourceKey(.pausePicture(show)) != SourceKey(.preview(nil, show)))
    }
}
