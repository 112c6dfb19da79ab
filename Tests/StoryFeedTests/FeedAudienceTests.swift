import Base
import Testing

@testable import StoryFeed

@Suite struct FeedAudienceRules {
    private var rig = FeedRig(streams: 5)
    private var audience = FeedAudience()
    private let ann: FeedViewer

    init() throws {
        ann = .named(try #require(ParticipantID("ann")))
    }

    private mutating func begin(
        _ number: UInt64, as viewer: FeedViewer, on stream: Int, preload: FeedPreload = .onSwipe
    ) throws -> [FeedAudience.Directive] {
        try audience.begin(
            FeedRig.sessionID(number), viewer: viewer, preload: preload, on: FeedRig.id(stream), in: rig.scene
        )
    }

    private mutating func peek(_ number: UInt64, _ stream: Int) -> [FeedAudience.Directive] {
        audience.receive(
            .peek(FeedRig.id(stream), direction: nil), from: FeedRig.sessionID(number), in: rig.scene)
    }

    private func directives(_ number: UInt64, _ effects: FeedEffect...) -> [FeedAudience.Directive] {
        effects.map { FeedAudience.Directive(session: FeedRig.sessionID(number), effect: $0) }
    }

    private func refused(_ number: UInt64, _ reason: FeedRefusal) -> [FeedAudience.Directive] {
        directives(number, .tell(.refused(.peek, FeedRig.id(9), reason)))
    }

    @Test mutating func `let two sessions of a viewer play one stream each`() throws {
        _ = try begin(1, as: ann, on: 1)
        let effects = try begin(2, as: ann, on: 2)
        #expect(effects.allSatisfy { $0.session == FeedRig.sessionID(2) })
        #expect(audience.attachedCount(of: ann) == 2)
    }

    @Test mutating func `tell the older session and let it go before the newer takes its stream`() throws {
        _ = try begin(1, as: ann, on: 1)
        _ = try begin(2, as: ann, on: 2)
        let effects = peek(2, 3)
        let farewell = directives(1, .release(.first, FeedRig.id(1)), .tell(.replaced), .close)
        #expect(Array(effects.prefix(3)) == farewell)
        #expect(effects[3] == directives(2, .attach(.second, FeedRig.id(3), .preview))[0])
        #expect(audience.session(FeedRig.sessionID(1)) == nil)
        #expect(peek(1, 3).isEmpty)
        #expect(audience.attachedCount(of: ann) == 2)
    }

    @Test mutating func `let the newest session have its stream when an older one holds two`() throws {
        _ = try begin(1, as: ann, on: 1)
        _ = peek(1, 2)
        let effects = try begin(2, as: ann, on: 3)
        #expect(effects.map(\.effect).contains(.close))
        #expect(audience.count == 1)
    }

    @Test mutating func `refuse an older session a neighbour that a newer one would pay for`() throws {
        _ = try begin(1, as: ann, on: 1)
        _ = try begin(2, as: ann, on: 2)
        #expect(
            peek(1, 3) == directives(1, .tell(.refused(.peek, FeedRig.id(3), .heldElsewhere))))
        _ = audience.end(FeedRig.sessionID(2))
        #expect(peek(1, 3).first?.effect == .attach(.second, FeedRig.id(3), .preview))
    }

    @Test mutating func `preload what found no room once a newer session leaves some`() throws {
        _ = try begin(1, as: ann, on: 1, preload: .eager)
        _ = try begin(2, as: ann, on: 4)
        rig.pass(.milliseconds(300))
        let early = audience.advance(in: rig.scene)
        #expect(early.isEmpty)
        #expect(audience.deadline == nil, "nothing is tried again while there is no room")
        _ = audience.end(FeedRig.sessionID(2))
        let deadline = try #require(audience.deadline)
        #expect(deadline <= rig.now)
        #expect(audience.advance(in: rig.scene).isEmpty)
        #expect(audience.deadline == rig.now + .milliseconds(300), "it settles like any other focus")
        rig.pass(.milliseconds(300))
        let late = audience.advance(in: rig.scene)
        #expect(late.first == directives(1, .attach(.second, FeedRig.id(2), .preview))[0])
        #expect(audience.deadline == nil)
    }

    @Test mutating func `try nothing again for who moved on or left`() throws {
        _ = try begin(1, as: ann, on: 1, preload: .eager)
        _ = try audience.beginPlayer(FeedRig.sessionID(2), viewer: ann)
        rig.pass(.milliseconds(300))
        let early = audience.advance(in: rig.scene)
        #expect(early.isEmpty)
        // The new focus settles as usual, whoever leaves.
        _ = audience.receive(
            .focus(FeedRig.id(3), ahead: nil), from: FeedRig.sessionID(1), in: rig.scene)
        _ = audience.end(FeedRig.sessionID(2))
        #expect(audience.deadline == rig.now + .milliseconds(300))
        _ = try audience.beginPlayer(FeedRig.sessionID(3), viewer: ann)
        rig.pass(.milliseconds(300))
        let late = audience.advance(in: rig.scene)
        #expect(late.isEmpty && audience.deadline == nil)
        _ = audience.end(FeedRig.sessionID(3))
        #expect(audience.deadline != nil)
        _ = audience.end(FeedRig.sessionID(1))
        #expect(audience.deadline == nil)
        let last = audience.advance(in: rig.scene)
        #expect(last.isEmpty)
    }

    @Test mutating func `do not let one viewer disturb another`() throws {
        for number in 1...3 as ClosedRange<UInt64> {
            let viewer = FeedViewer.anonymous(FeedRig.sessionID(number))
            _ = try begin(number, as: viewer, on: 1)
            _ = peek(number, 2)
            #expect(audience.attachedCount(of: viewer) == 2)
        }
        #expect(audience.count == 3)
    }

    @Test mutating func `count players outside the feed`() throws {
        #expect(try audience.beginPlayer(FeedRig.sessionID(1), viewer: ann).isEmpty)
        #expect(try audience.beginPlayer(FeedRig.sessionID(2), viewer: ann).isEmpty)
        let effects = try begin(3, as: ann, on: 1)
        #expect(Array(effects.prefix(2)) == directives(1, .tell(.replaced), .close))
        #expect(audience.attachedCount(of: ann) == 2)
        #expect(throws: FeedRefusal.noSession) {
            try audience.perform(.release(nil), for: FeedRig.sessionID(2), in: rig.scene)
        }
        #expect(audience.end(FeedRig.sessionID(2)).isEmpty)
        #expect(audience.attachedCount(of: ann) == 1)
    }

    @Test mutating func `dismiss an idle session that could never play again`() throws {
        rig.hidden = Set((1...5).map(FeedRig.id))
        _ = try begin(1, as: ann, on: 1)
        rig.hidden = []
        _ = try begin(2, as: ann, on: 1)
        _ = peek(2, 2)
        #expect(peek(1, 3) == directives(1, .tell(.replaced), .close))
    }

    @Test mutating func `bound the sessions of a viewer and of all`() throws {
        rig.hidden = Set((1...5).map(FeedRig.id))
        for number in 1...5 as ClosedRange<UInt64> { _ = try begin(number, as: ann, on: 1) }
        #expect(audience.count == ViewerAttachments.sessionLimit)
        #expect(audience.session(FeedRig.sessionID(1)) == nil)

        var settings = FeedAudience.Configuration()
        settings.sessionLimit = 1
        audience = FeedAudience(settings)
        _ = try begin(1, as: ann, on: 1)
        #expect(throws: FeedRefusal.full) { try audience.beginPlayer(FeedRig.sessionID(2), viewer: ann) }
        #expect(throws: FeedRefusal.full) { try begin(1, as: ann, on: 1) }
    }

    @Test mutating func `answer refusals on the control channel, but a flood only once`() throws {
        _ = try begin(1, as: ann, on: 1)
        for _ in 0..<30 { #expect(peek(1, 9) == refused(1, .notLive)) }
        #expect(peek(1, 9) == refused(1, .tooManyMessages))
        #expect(peek(1, 9).isEmpty)
        rig.pass(.milliseconds(50))
        #expect(peek(1, 9) == refused(1, .notLive))
        #expect(throws: FeedRefusal.tooManyMessages) {
            try audience.perform(.release(nil), for: FeedRig.sessionID(1), in: rig.scene)
        }
    }

    @Test mutating func `move everybody on whose stream ends, and nobody else`() throws {
        for number in 1...4 as ClosedRange<UInt64> {
            let viewer = FeedViewer.anonymous(FeedRig.sessionID(number))
            _ = try begin(number, as: viewer, on: number < 3 ? 2 : 4)
        }
        let end = rig.feed.end(FeedRig.id(2))
        let departure = try #require(end)
        let effects = audience.streamEnded(departure, in: rig.scene)
        #expect(Set(effects.map(\.session)) == [FeedRig.sessionID(1), FeedRig.sessionID(2)])
        #expect(audience.session(FeedRig.sessionID(1))?.focusedStream == FeedRig.id(3))
        #expect(audience.streamEnded(departure, in: rig.scene).isEmpty)
    }

    @Test mutating func `wake those who wait when they may see something`() throws {
        rig.hidden = Set((1...5).map(FeedRig.id))
        #expect(try begin(1, as: ann, on: 1).last?.effect == .tell(.empty))
        rig.hidden.remove(FeedRig.id(4))
        let effects = audience.accessChanged(to: FeedRig.id(4), in: rig.scene)
        #expect(effects.first?.effect == .attach(.first, FeedRig.id(4), .full))
    }

    @Test mutating func `preload when the focus has settled, not for those who are gone`() throws {
        _ = try begin(1, as: .anonymous(FeedRig.sessionID(1)), on: 1, preload: .eager)
        rig.pass(.milliseconds(100))
        _ = try begin(2, as: .anonymous(FeedRig.sessionID(2)), on: 1, preload: .eager)
        _ = try begin(3, as: .anonymous(FeedRig.sessionID(3)), on: 1)
        #expect(audience.deadline == .zero + .milliseconds(300))
        _ = audience.end(FeedRig.sessionID(1))
        rig.pass(.milliseconds(200))
        #expect(audience.advance(in: rig.scene).isEmpty)
        rig.pass(.milliseconds(100))
        #expect(audience.advance(in: rig.scene).map(\.session).first == FeedRig.sessionID(2))
        #expect(audience.deadline == nil)
    }
}
