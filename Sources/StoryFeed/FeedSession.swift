import Base

/// The feed, the time and the permissions at the moment of an event, which a session's decisions depend on.
package struct FeedScene {
    /// The feed after the event.
    package let feed: StoryFeed
    /// For message rates and preloading.
    package let now: MonotonicTime
    /// Whether a viewer may begin to watch a stream now.
    package let maySee: (FeedViewer, StreamID) -> Bool
    /// Whether a viewer who already watches a stream may go on.
    package let mayStay: (FeedViewer, StreamID) -> Bool

    /// Nil if it equals `maySee`.
    package init(
        feed: StoryFeed, now: MonotonicTime, maySee: @escaping (FeedViewer, StreamID) -> Bool,
        mayStay: ((FeedViewer, StreamID) -> Bool)? = nil
    ) {
        self.feed = feed
        self.now = now
        self.maySee = maySee
        self.mayStay = mayStay ?? maySee
    }
}

/// When the neighbour is preloaded.
package enum FeedPreload: String, Equatable, Sendable {
    /// Once the focus has settled.
    case eager
    /// Only when a swipe begins.
    case onSwipe = "on-swipe"
}

/// One viewer's place in the feed: a focus, which plays, and at most one neighbour, which is preloaded.
///
/// There are two slots, so a session never holds more than two streams. The effects release a slot before they attach
/// another stream to it, so the limit also holds between two effects. Only promoting the neighbour changes the focus
/// without a gap, which is why there is a neighbour.
///
/// The parameter `room` is the number of streams that the session may hold: 2, or less if newer sessions of the same
/// viewer hold some.
package struct FeedSession: Sendable {
    /// How a session preloads, and how many messages its client may send.
    package struct Configuration: Equatable, Sendable {
        /// Chosen by the client at the beginning of the session.
        package var preload: FeedPreload
        /// How long the focus must stay the same before the next stream is preloaded.
        package var settleTime = Duration.milliseconds(300)
        /// Interval at which further messages are allowed after the burst.
        ///
        /// A swipe takes up to three messages. So the burst of 30 allows ten swipes, and 20 messages a second allow
        /// six or seven swipes a second.
        package var messageInterval = Duration.milliseconds(50)
        /// Number of messages that may come in a burst before `messageInterval` applies.
        package var messageBurst = 30

        package init(preload: FeedPreload) {
            self.preload = preload
        }
    }

    /// A stream in one of the session's slots.
    struct Attachment: Equatable, Sendable {
        let slot: FeedSlot
        let stream: StreamID
    }

    /// The viewer, whose sessions share the limit of two streams.
    package let viewer: FeedViewer
    private let configuration: Configuration
    /// Nil only while no stream that the viewer may see is live.
    private(set) var focus: Attachment?
    private(set) var neighbour: Attachment?
    /// The direction of the last swipe that was committed.
    private(set) var direction = FeedDirection.forward
    /// The direction of the swipe that attached the neighbour, until the swipe is committed or called off.
    private var swipe: FeedDirection?
    /// The stream that the client announced to show next.
    private var ahead: StreamID?
    /// When to preload; nil if that has been done or is not wanted.
    private(set) var deadline: MonotonicTime?
    /// Whether a stream that goes live has to be offered to this session, because it has no focus, or no neighbour in
    /// its direction.
    private(set) var isHungry = true
    /// Whether the neighbour was due, but newer sessions of the viewer left no room for it.
    private(set) var awaitsRoom = false
    /// The highest request number that the client has sent; nil if it has sent none.
    package private(set) var request: UInt32?
    private var budget: RateBudget

    package init(viewer: FeedViewer, _ configuration: Configuration) {
        self.viewer = viewer
        self.configuration = configuration
        budget = RateBudget(interval: configuration.messageInterval, burst: configuration.messageBurst)
    }

    /// The number of streams attached now, 0 to 2.
    package var attachedCount: Int { (focus == nil ? 0 : 1) + (neighbour == nil ? 0 : 1) }
    /// The stream in focus; nil only while no stream that the viewer may see is live.
    package var focusedStream: StreamID? { focus?.stream }

    /// The slots that carry a stream, in the order of their numbers, as the client is notified of them.
    package var slots: [FeedNotice.SlotState] {
        let states = [
            focus.map { FeedNotice.SlotState(slot: $0.slot, stream: $0.stream, quality: .full) },
            neighbour.map { FeedNotice.SlotState(slot: $0.slot, stream: $0.stream, quality: .preview) },
        ]
        return states.compactMap(\.self).sorted { $0.slot.rawValue < $1.slot.rawValue }
    }

    // MARK: Inputs

    /// Begins on the requested stream, or on the first one that the viewer may see.
    ///
    /// If the request cannot be met, the session still begins: a notice refuses the request, and the first stream
    /// plays.
    package mutating func start(on wish: StreamID?, in scene: FeedScene) -> [FeedEffect] {
        change { session in
            var effects: [FeedEffect] = []
            var stream = wish
            if let wish {
                do throws(FeedRefusal) {
                    try session.admit(wish, in: scene)
                } catch {
                    effects.append(.tell(.refused(.focus, wish, error)))
                    stream = nil
                }
            }
            guard let first = stream ?? session.next(from: nil, .forward, in: scene) else {
                return effects + [.tell(.empty)]
            }
            return effects + session.attachFocus(first, at: scene.now)
        }
    }

    /// Handles a message from the client.
    ///
    /// A message with a number results in the present slots or in a refusal. Until then the client cannot know
    /// whether the last notice it received is older than its request.
    /// - Parameters:
    ///   - request: the message's number, if it has one.
    ///   - isBusy: whether too many effects of earlier messages wait to be performed, so that no more may follow.
    /// - Throws: why the message is refused; a refused message changes no slot.
    package mutating func receive(
        _ message: FeedMessage, request: UInt32? = nil, in scene: FeedScene, room: Int, isBusy: Bool = false
    ) throws(FeedRefusal) -> [FeedEffect] {
        // Refused requests count too, because a refusal leaves the slots as they were: they are valid after it.
        if let request { self.request = max(request, self.request ?? 0) }
        guard budget.spend(at: scene.now), !isBusy else { throw .tooManyMessages }
        let effects = try follow(message, in: scene, room: room)
        let isTold = effects.contains { if case .tell(.slots) = $0 { true } else { false } }
        return request == nil || isTold ? effects : effects + [tellSlots]
    }

    private mutating func follow(
        _ message: FeedMessage, in scene: FeedScene, room: Int
    ) throws(FeedRefusal) -> [FeedEffect] {
        switch message {
        case .peek(let stream, let direction):
            return try peek(stream, direction, in: scene, room: room)
        case .focus(let stream, let ahead):
            return try focus(stream, ahead: ahead, in: scene)
        case .release(let stream):
            guard let neighbour, stream == nil || stream == neighbour.stream else { return [] }
            return change { session in
                session.settle(at: scene.now)
                return session.releaseNeighbour()
            }
        }
    }

    /// Releases streams that have ended or may no longer be seen, and moves the focus on if it is one of them.
    ///
    /// The focus moves to the neighbour if there is one: it lies in the direction of the last swipe and already
    /// plays. Otherwise it moves to the nearest stream in that direction, or else in the other direction.
    /// - Parameters:
    ///   - ended: a stream that has just ended, and its former place; nil if none has.
    package mutating func recheck(ended: (stream: StreamID, rank: FeedRank)?, in scene: FeedScene)
        -> [FeedEffect]
    {
        change { session in
            var effects: [FeedEffect] = []
            if let stream = session.neighbour?.stream, session.loss(of: stream, ended, in: scene) != nil {
                effects += session.releaseNeighbour()
                session.settle(at: scene.now)
            }
            guard let lost = session.focus, let loss = session.loss(of: lost.stream, ended, in: scene) else {
                return effects
            }
            let rank = ended?.stream == lost.stream ? ended?.rank : scene.feed.rank(of: lost.stream)
            effects.append(.release(lost.slot, lost.stream))
            session.focus = nil
            session.ahead = nil
            if let neighbour = session.neighbour {
                effects.append(session.promote(neighbour, at: scene.now))
            } else if let next = session.next(from: rank, session.direction, in: scene)
                ?? session.next(from: rank, session.direction.opposite, in: scene)
            {
                effects += session.attachFocus(next, after: lost.slot, at: scene.now)
            }
            guard let focus = session.focus else {
                session.deadline = nil
                session.awaitsRoom = false
                session.isHungry = true
                return effects + [.tell(.empty)]
            }
            return effects + [.tell(.moved(from: lost.stream, to: focus.stream, loss))]
        }
    }

    /// Why a stream must be released; nil if the viewer may go on watching it.
    private func loss(
        of stream: StreamID, _ ended: (stream: StreamID, rank: FeedRank)?, in scene: FeedScene
    ) -> FeedNotice.Loss? {
        guard scene.feed.isLive(stream), stream != ended?.stream else { return .ended }
        return scene.mayStay(viewer, stream) ? nil : .notPermitted
    }

    /// Considers a stream that went live or may be seen now, if the session awaits one.
    package mutating func streamAppeared(in scene: FeedScene, room: Int) -> [FeedEffect] {
        guard isHungry else { return [] }
        if focus != nil {
            if deadline == nil { settle(at: scene.now) }
            return []
        }
        guard room >= 1, let first = next(from: nil, .forward, in: scene) else { return [] }
        return change { $0.attachFocus(first, at: scene.now) }
    }

    /// Starts the time again after which the neighbour is preloaded, if it found no room before.
    package mutating func roomAppeared(at now: MonotonicTime) {
        guard awaitsRoom else { return }
        settle(at: now)
    }

    /// Preloads the neighbour if the focus has rested long enough.
    ///
    /// At the end of the list it preloads the stream before the focus, the only one to swipe to, and goes on awaiting
    /// one in the direction of the swipes.
    package mutating func advance(in scene: FeedScene, room: Int) -> [FeedEffect] {
        guard let deadline, deadline <= scene.now else { return [] }
        self.deadline = nil
        guard let focus, neighbour == nil || isHungry else { return [] }
        guard room >= 2 else {
            awaitsRoom = true
            return []
        }
        let rank = scene.feed.rank(of: focus.stream)
        let ahead =
            ahead.flatMap { isWanted($0, in: scene) ? $0 : nil } ?? next(from: rank, direction, in: scene)
        let stream = ahead ?? next(from: rank, direction.opposite, in: scene)
        isHungry = ahead == nil
        guard let stream, stream != neighbour?.stream else { return [] }
        return change { session in
            let effects = session.releaseNeighbour() + session.attachNeighbour(stream)
            session.isHungry = ahead == nil
            return effects
        }
    }

    /// Releases all streams.
    package mutating func end() -> [FeedEffect] {
        var effects = releaseNeighbour()
        if let focus { effects.append(.release(focus.slot, focus.stream)) }
        focus = nil
        deadline = nil
        awaitsRoom = false
        return effects
    }

    // MARK: Rules

    private mutating func peek(
        _ stream: StreamID, _ direction: FeedDirection?, in scene: FeedScene, room: Int
    ) throws(FeedRefusal) -> [FeedEffect] {
        guard let focus else { throw .noFocus }
        guard stream != focus.stream, stream != neighbour?.stream else { return [] }
        try admit(stream, in: scene)
        guard room >= 2 else { throw .heldElsewhere }
        let swipe = direction ?? way(to: stream, in: scene)
        return change { session in
            let effects = session.releaseNeighbour()
            session.swipe = swipe
            return effects + session.attachNeighbour(stream)
        }
    }

    private mutating func focus(
        _ stream: StreamID, ahead: StreamID?, in scene: FeedScene
    ) throws(FeedRefusal) -> [FeedEffect] {
        guard stream != focus?.stream else { return [] }
        try admit(stream, in: scene)
        let jump = way(to: stream, in: scene)
        return change { session in
            session.ahead = ahead
            let left = session.focus
            session.focus = nil
            if let neighbour = session.neighbour, neighbour.stream == stream {
                let promotion = session.promote(neighbour, at: scene.now)
                return [promotion] + (left.map { [.release($0.slot, $0.stream)] } ?? [])
            }
            var effects = session.releaseNeighbour()
            session.direction = jump
            if let left { effects.append(.release(left.slot, left.stream)) }
            // The other slot is used, as if the stream had been preloaded, so that the client's picture moves the
            // same way.
            return effects + session.attachFocus(stream, after: left?.slot, at: scene.now)
        }
    }

    /// Checks that a stream is live and that the viewer may see it.
    private func admit(_ stream: StreamID, in scene: FeedScene) throws(FeedRefusal) {
        guard scene.feed.isLive(stream) else { throw .notLive }
        guard scene.maySee(viewer, stream) else { throw .notPermitted }
    }

    /// The direction from the focus to a stream; the present direction if either is not in the feed.
    private func way(to stream: StreamID, in scene: FeedScene) -> FeedDirection {
        guard let focus, let from = scene.feed.rank(of: focus.stream), let to = scene.feed.rank(of: stream)
        else { return direction }
        return from < to ? .forward : .backward
    }

    private func isWanted(_ stream: StreamID, in scene: FeedScene) -> Bool {
        stream != focus?.stream && scene.feed.isLive(stream) && scene.maySee(viewer, stream)
    }

    private func next(from rank: FeedRank?, _ direction: FeedDirection, in scene: FeedScene) -> StreamID? {
        scene.feed.nearest(to: rank, direction) { isWanted($0, in: scene) }
    }

    // MARK: Steps

    /// Performs a change and appends a `slots` notice if the slots differ from before.
    private mutating func change(_ body: (inout FeedSession) -> [FeedEffect]) -> [FeedEffect] {
        let before = slots
        let effects = body(&self)
        return slots == before ? effects : effects + [tellSlots]
    }

    private var tellSlots: FeedEffect { .tell(.slots(slots, request: request)) }

    /// Starts the time after which the neighbour is preloaded, if the client wants that without a swipe.
    private mutating func settle(at now: MonotonicTime) {
        deadline = configuration.preload == .eager ? now + configuration.settleTime : nil
        awaitsRoom = false
    }

    /// The slot of the previous focus; both slots are empty now.
    private mutating func attachFocus(
        _ stream: StreamID, after slot: FeedSlot? = nil, at now: MonotonicTime
    ) -> [FeedEffect] {
        let attachment = Attachment(slot: slot?.other ?? .first, stream: stream)
        focus = attachment
        isHungry = false
        settle(at: now)
        return [.attach(attachment.slot, stream, .full)]
    }

    /// Makes the neighbour the focus; the previous focus must have been set aside before.
    private mutating func promote(_ attachment: Attachment, at now: MonotonicTime) -> FeedEffect {
        focus = attachment
        neighbour = nil
        direction = swipe ?? direction
        swipe = nil
        isHungry = false
        settle(at: now)
        return .promote(attachment.slot, attachment.stream)
    }

    private mutating func attachNeighbour(_ stream: StreamID) -> [FeedEffect] {
        guard let focus else { return [] }
        let attachment = Attachment(slot: focus.slot.other, stream: stream)
        neighbour = attachment
        isHungry = false
        deadline = nil
        awaitsRoom = false
        return [.attach(attachment.slot, stream, .preview)]
    }

    private mutating func releaseNeighbour() -> [FeedEffect] {
        guard let lost = neighbour else { return [] }
        neighbour = nil
        swipe = nil
        return [.release(lost.slot, lost.stream)]
    }
}
