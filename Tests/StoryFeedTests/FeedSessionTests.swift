import Base
import Testing

@testable import StoryFeed

/// One session on a feed of five streams.
private struct SessionRig {
    var rig = FeedRig(streams: 5)
    var session: FeedSession
    var room = 2

    init(_ preload: FeedPreload = .onSwipe, at start: Int? = nil) {
        session = FeedSession(viewer: .anonymous(FeedRig.sessionID(1)), .init(preload: preload))
        guard let start else { return }
        _ = session.start(on: FeedRig.id(start), in: rig.scene)
    }

    mutating func start(on number: Int? = nil) -> [FeedEffect] {
        session.start(on: number.map(FeedRig.id), in: rig.scene)
    }

    mutating func peek(_ number: Int, _ direction: FeedDirection? = nil) throws -> [FeedEffect] {
        try session.receive(.peek(FeedRig.id(number), direction: direction), in: rig.scene, room: room)
    }

    mutating func focus(_ number: Int, ahead: Int? = nil) throws -> [FeedEffect] {
        let message = FeedMessage.focus(FeedRig.id(number), ahead: ahead.map(FeedRig.id))
        return try session.receive(message, in: rig.scene, room: room)
    }

    mutating func release(_ number: Int? = nil) throws -> [FeedEffect] {
        try session.receive(.release(number.map(FeedRig.id)), in: rig.scene, room: room)
    }

    mutating func end(_ number: Int) -> [FeedEffect] {
        let rank = rig.feed.end(FeedRig.id(number))?.rank
        return session.recheck(ended: rank.map { ($0.id, $0) }, in: rig.scene)
    }

    mutating func hide(_ number: Int) -> [FeedEffect] {
        rig.hidden.insert(FeedRig.id(number))
        return session.recheck(ended: nil, in: rig.scene)
    }

    mutating func pass(_ interval: Duration) -> [FeedEffect] {
        rig.pass(interval)
        return session.advance(in: rig.scene, room: room)
    }
}

private func attach(_ slot: FeedSlot, _ number: Int, _ quality: FeedQuality) -> FeedEffect {
    .attach(slot, FeedRig.id(number), quality)
}

private func promote(_ slot: FeedSlot, _ number: Int) -> FeedEffect { .promote(slot, FeedRig.id(number)) }

private func release(_ slot: FeedSlot, _ number: Int) -> FeedEffect { .release(slot, FeedRig.id(number)) }

private func slots(_ states: (FeedSlot, Int, FeedQuality)...) -> FeedEffect {
    let states = states.map { FeedNotice.SlotState(slot: $0.0, stream: FeedRig.id($0.1), quality: $0.2) }
    return .tell(.slots(states))
}

private func moved(_ from: Int, _ target: Int, _ loss: FeedNotice.Loss) -> FeedEffect {
    .tell(.moved(from: FeedRig.id(from), to: FeedRig.id(target), loss))
}

@Suite struct FeedSessionTransitions {
    @Test func `starts on the first stream`() {
        var rig = SessionRig()
        #expect(rig.start() == [attach(.first, 1, .full), slots((.first, 1, .full))])
    }

    @Test func `starts on the stream that was asked for`() {
        var rig = SessionRig()
        #expect(rig.start(on: 3) == [attach(.first, 3, .full), slots((.first, 3, .full))])
    }

    @Test func `starts on the first stream if the one asked for is not to be had`() {
        var rig = SessionRig()
        let refused = FeedEffect.tell(.refused(.focus, FeedRig.id(9), .notLive))
        #expect(rig.start(on: 9) == [refused, attach(.first, 1, .full), slots((.first, 1, .full))])
    }

    @Test func `starts with nothing when nothing is live, and plays what appears`() throws {
        var rig = SessionRig()
        rig.rig = FeedRig()
        #expect(rig.start() == [.tell(.empty)])
        #expect(rig.session.isHungry)
        _ = try rig.rig.feed.goLive(FeedRig.item(4))
        #expect(
            rig.session.streamAppeared(in: rig.rig.scene, room: 2)
                == [attach(.first, 4, .full), slots((.first, 4, .full))])
        #expect(rig.session.streamAppeared(in: rig.rig.scene, room: 2).isEmpty)
    }

    @Test func `peek attaches the neighbour to the idle slot, small and silent`() throws {
        var rig = SessionRig(at: 1)
        #expect(
            try rig.peek(2)
                == [attach(.second, 2, .preview), slots((.first, 1, .full), (.second, 2, .preview))])
        #expect(try rig.peek(2).isEmpty)
        #expect(try rig.peek(1).isEmpty)
    }

    @Test func `peek at another stream lets the neighbour go first`() throws {
        var rig = SessionRig(at: 2)
        _ = try rig.peek(3)
        #expect(
            try rig.peek(1) == [
                release(.second, 3), attach(.second, 1, .preview),
                slots((.first, 2, .full), (.second, 1, .preview)),
            ])
    }

    @Test func `focus promotes the neighbour and lets the other go`() throws {
        var rig = SessionRig(at: 1)
        _ = try rig.peek(2)
        #expect(
            try rig.focus(2) == [promote(.second, 2), release(.first, 1), slots((.second, 2, .full))])
        #expect(try rig.focus(2).isEmpty)
        #expect(try rig.peek(3).first == attach(.first, 3, .preview))
    }

    @Test func `focus on what was not preloaded lets everything go first`() throws {
        var rig = SessionRig(at: 1)
        _ = try rig.peek(2)
        #expect(
            try rig.focus(4) == [
                release(.second, 2), release(.first, 1), attach(.second, 4, .full),
                slots((.second, 4, .full)),
            ])
    }

    @Test func `release lets the neighbour go`() throws {
        var rig = SessionRig(at: 1)
        _ = try rig.peek(2)
        #expect(try rig.release(3).isEmpty)
        #expect(try rig.release() == [release(.second, 2), slots((.first, 1, .full))])
        #expect(try rig.release().isEmpty)
    }

    @Test func `the focus that settled preloads the next stream, if that is wanted`() {
        var eager = SessionRig(.eager, at: 2)
        #expect(eager.pass(.milliseconds(299)).isEmpty)
        #expect(eager.pass(.milliseconds(1)).first == attach(.second, 3, .preview))
        #expect(eager.session.deadline == nil)
        var lazy = SessionRig(.onSwipe, at: 2)
        #expect(lazy.session.deadline == nil)
        #expect(lazy.pass(.seconds(9)).isEmpty)
    }

    @Test func `preloads in the direction of the last swipe that was committed`() throws {
        var rig = SessionRig(.eager, at: 4)
        _ = try rig.peek(3)
        _ = try rig.focus(3)
        #expect(rig.pass(.seconds(1)).first == attach(.first, 2, .preview))
        // A swipe called off is none.
        _ = try rig.peek(4)
        _ = try rig.release()
        #expect(rig.pass(.seconds(1)).first == attach(.first, 2, .preview))
        // A jump is one.
        _ = try rig.focus(4)
        #expect(rig.pass(.seconds(1)).first == attach(.second, 5, .preview))
    }

    @Test func `takes the client's word for the direction and for what is ahead`() throws {
        var rig = SessionRig(.eager, at: 3)
        _ = try rig.peek(4, .backward)
        _ = try rig.focus(4)
        #expect(rig.pass(.seconds(1)).first == attach(.first, 3, .preview))
        _ = try rig.focus(3, ahead: 5)
        #expect(rig.pass(.seconds(1)).first == attach(.second, 5, .preview))
        // Not live: the server's own choice, still backward.
        _ = try rig.focus(5, ahead: 99)
        #expect(rig.pass(.seconds(1)).first == attach(.first, 4, .preview))
    }

    @Test func `preloads later what goes live behind the last stream`() throws {
        var rig = SessionRig(.eager, at: 5)
        #expect(rig.pass(.seconds(1)).first == attach(.second, 4, .preview))
        #expect(rig.session.isHungry)
        _ = try rig.rig.feed.goLive(FeedRig.item(6))
        #expect(rig.session.streamAppeared(in: rig.rig.scene, room: 2).isEmpty)
        #expect(
            rig.pass(.seconds(1)) == [
                release(.second, 4), attach(.second, 6, .preview),
                slots((.first, 5, .full), (.second, 6, .preview)),
            ])
        #expect(!rig.session.isHungry)
    }

    @Test func `preloads at the end of the list the one stream there is to swipe to, and only once`() throws {
        var rig = SessionRig(.eager, at: 5)
        #expect(
            rig.pass(.seconds(1)) == [
                attach(.second, 4, .preview), slots((.first, 5, .full), (.second, 4, .preview)),
            ])
        #expect(rig.session.deadline == nil)
        // Something new, but not further on: nothing changes.
        _ = try rig.rig.feed.goLive(FeedRig.item(0))
        #expect(rig.session.streamAppeared(in: rig.rig.scene, room: 2).isEmpty)
        #expect(rig.pass(.seconds(1)).isEmpty)
        #expect(rig.session.neighbour?.stream == FeedRig.id(4))
    }

    @Test func `moves on to the neighbour when the focus ends`() throws {
        var rig = SessionRig(at: 3)
        _ = try rig.peek(2)
        #expect(
            rig.end(3) == [
                release(.first, 3), promote(.second, 2), moved(3, 2, .ended), slots((.second, 2, .full)),
            ])
    }

    @Test func `moves on to the next when the focus ends, or back when it was the last`() {
        var rig = SessionRig(at: 4)
        #expect(
            rig.end(4) == [
                release(.first, 4), attach(.second, 5, .full), moved(4, 5, .ended),
                slots((.second, 5, .full)),
            ])
        #expect(rig.end(5).dropFirst().first == attach(.first, 3, .full))
    }

    @Test func `is told when the last stream ends`() {
        var rig = SessionRig(.eager, at: 1)
        for number in 2...5 { #expect(rig.end(number).isEmpty) }
        #expect(rig.end(1) == [release(.first, 1), .tell(.empty), slots()])
        #expect(rig.session.deadline == nil)
        #expect(rig.end(1).isEmpty)
    }

    @Test func `lets a neighbour go that ends, and preloads another`() {
        var rig = SessionRig(.eager, at: 1)
        _ = rig.pass(.seconds(1))
        #expect(rig.end(2) == [release(.second, 2), slots((.first, 1, .full))])
        #expect(rig.pass(.seconds(1)).first == attach(.second, 3, .preview))
    }

    @Test func `lets go of what may not be seen any more`() throws {
        var rig = SessionRig(at: 1)
        _ = try rig.peek(2)
        #expect(rig.hide(2).first == release(.second, 2))
        #expect(
            rig.hide(1) == [
                release(.first, 1), attach(.second, 3, .full), moved(1, 3, .notPermitted),
                slots((.second, 3, .full)),
            ])
        _ = try rig.peek(4)
        rig.rig.hidden.insert(FeedRig.id(4))
        #expect(rig.hide(3).contains(attach(.first, 5, .full)))
    }

    @Test func `lets everything go at its end`() throws {
        var rig = SessionRig(at: 1)
        _ = try rig.peek(2)
        #expect(rig.session.end() == [release(.second, 2), release(.first, 1)])
        #expect(rig.session.end().isEmpty)
    }

    @Test func `preloads nothing without room`() {
        var rig = SessionRig(.eager, at: 1)
        rig.room = 1
        #expect(rig.pass(.seconds(1)).isEmpty)
    }
}

@Suite struct FeedSessionRefusals {
    @Test func `meet what is not live`() {
        var rig = SessionRig(at: 1)
        #expect(throws: FeedRefusal.notLive) { try rig.peek(9) }
        #expect(throws: FeedRefusal.notLive) { try rig.focus(9) }
        #expect(rig.session.attachedCount == 1)
    }

    @Test func `meet what the viewer may not see`() throws {
        var rig = SessionRig(at: 1)
        _ = try rig.peek(2)
        rig.rig.hidden = [FeedRig.id(3)]
        #expect(throws: FeedRefusal.notPermitted) { try rig.peek(3) }
        #expect(throws: FeedRefusal.notPermitted) { try rig.focus(3) }
        #expect(rig.session.focusedStream == FeedRig.id(1))
        #expect(rig.session.neighbour?.stream == FeedRig.id(2))
    }

    @Test func `meet a swipe away from nothing`() {
        var rig = SessionRig()
        #expect(throws: FeedRefusal.noFocus) { try rig.peek(2) }
    }

    @Test func `meet a neighbour for which a newer session leaves no room`() throws {
        var rig = SessionRig(at: 1)
        rig.room = 1
        #expect(throws: FeedRefusal.heldElsewhere) { try rig.peek(2) }
        #expect(try rig.focus(2).prefix(2) == [release(.first, 1), attach(.second, 2, .full)])
    }

    @Test func `meet more messages than anybody swipes, until there is time again`() throws {
        var rig = SessionRig(at: 1)
        for _ in 0..<15 {
            _ = try rig.peek(2)
            _ = try rig.release()
        }
        #expect(throws: FeedRefusal.tooManyMessages) { try rig.focus(2) }
        #expect(rig.session.focusedStream == FeedRig.id(1))
        _ = rig.pass(.milliseconds(50))
        #expect(try rig.focus(2).isEmpty == false)
        #expect(throws: FeedRefusal.tooManyMessages) { try rig.release() }
    }
}
