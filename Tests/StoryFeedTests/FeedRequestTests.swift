import Base
import Testing

@testable import StoryFeed

/// Numbers that a client gives what it asks for, so that it knows which of the server's words are newer than that.
@Suite struct `Requests with a number` {
    private var rig = FeedRig(streams: 3)
    private var audience = FeedAudience()
    private let session = FeedRig.sessionID(1)

    init() throws {
        _ = try audience.begin(
            session, viewer: .anonymous(session), preload: .eager, on: FeedRig.id(1), in: rig.scene)
    }

    private mutating func say(_ message: FeedMessage, _ request: UInt32?) -> [FeedEffect] {
        audience.receive(message, request: request, from: session, in: rig.scene).map(\.effect)
    }

    private func state(_ slot: FeedSlot, _ number: Int, _ quality: FeedQuality) -> FeedNotice.SlotState {
        FeedNotice.SlotState(slot: slot, stream: FeedRig.id(number), quality: quality)
    }

    private func focus(_ number: Int) -> FeedMessage { .focus(FeedRig.id(number), ahead: nil) }

    @Test mutating func `are named by all that is told of the slots from then on`() {
        let second = state(.second, 2, .full)
        #expect(say(focus(2), 1).last == .tell(.slots([second], request: 1)))
        // Not asked for, but newer than the request all the same.
        rig.pass(.milliseconds(300))
        let preloaded = audience.advance(in: rig.scene).map(\.effect)
        #expect(preloaded.last == .tell(.slots([state(.first, 3, .preview), second], request: 1)))
    }

    @Test mutating func `are answered also where nothing changes`() {
        let first = FeedEffect.tell(.slots([state(.first, 1, .full)], request: 7))
        #expect(say(focus(1), 7) == [first])
        #expect(say(.release(nil), nil) == [])
        // One that was overtaken by a newer one: the slots are true after both.
        #expect(say(.release(nil), 6) == [first])
        #expect(say(.peek(FeedRig.id(1), direction: nil), .max).count == 1)
        #expect(audience.session(session)?.request == .max)
    }

    @Test mutating func `are named by a refusal, and count as done`() {
        #expect(say(focus(9), 3) == [.tell(.refused(.focus, FeedRig.id(9), .notLive, request: 3))])
        #expect(audience.session(session)?.request == 3)
        #expect(say(focus(9), nil) == [.tell(.refused(.focus, FeedRig.id(9), .notLive))])
    }

    @Test mutating func `count as done also where they are too many to be answered`() {
        for request in 1...40 as ClosedRange<UInt32> { _ = say(.release(nil), request) }
        #expect(say(.release(nil), 41) == [])
        rig.pass(.milliseconds(300))
        guard case .tell(.slots(_, let request))? = audience.advance(in: rig.scene).last?.effect else {
            Issue.record("nothing was preloaded")
            return
        }
        #expect(request == 41)
    }

    @Test mutating func `are named to nobody who gives none`() {
        #expect(say(focus(2), nil).last == .tell(.slots([state(.second, 2, .full)])))
        #expect(say(focus(2), nil) == [])
        #expect(audience.session(session)?.request == nil)
    }
}
