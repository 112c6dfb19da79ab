import Base

/// What is around a session when something happens to it.
package struct FeedScene {
    /// Changed already by what has happened.
    package let feed: StoryFeed
    /// For message rates and preloading.
    package let now: MonotonicTime
    /// Whether a viewer may begin to see a stream, as things are now.
    package let maySee: (FeedViewer, StreamID) -> Bool
    /// Whether a viewer who sees a stream already may go on.
    package let mayStay: (FeedViewer, StreamID) -> Bool

    /// - Parameter mayStay: nil where it is the same as `maySee`.
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

/// When the neighbour is preloaded without a swipe.
package enum FeedPreload: String, Equatable, Sendable {
    /// Once the focus has settled.
    case eager
    /// Only when a swipe begins.
    case onSwipe = "on-swipe"
}

/// One viewer's place in the feed: a focus, which plays, and at most one neighbour, which is ready to.
///
/// Two slots, so never more than two streams. A slot is released before another stream is attached, in the order of the
/// effects, so that the number holds between them too. The only way to change the focus without a gap is to promote
/// the neighbour; that is the point of having one.
///
/// `room` says how many streams the session may hold: 2, or less if newer sessions of the same viewer hold some.
package struct FeedSession: Sendable {
    /// How eager a session is, and how much its client may say.
    package struct Configuration: Equatable, Sendable {
        /// As the client asked when it came.
        package var preload: FeedPreload
        /// How long the focus must rest before the next stream is preloaded.
        package var settleTime = Duration.milliseconds(300)
        /// Messages: three a swipe, so a burst of ten swipes and then six or seven a second.
        package var messageInterval = Duration.milliseconds(50)
        /// Messages before `messageInterval` counts.
        package var messageBurst = 30

        package init(preload: FeedPreload) {
            self.preload = preload
        }
    }

    struct Attachment: Equatable, Sendable {
        let slot: FeedSlot
        let stream: StreamID
    }

    /// Whose sessions share the two streams.
    package let viewer: FeedViewer
    private let configuration: Configuration
    /// Nil only while no stream is live that the viewer may see.
    private(set) var focus: Attachment?
    private(set) var neighbour: Attachment?
    /// Of the last swipe that was not called off.
    private(set) var direction = FeedDirection.forward
    /// Of the swipe that brought the neighbour, until it is committed or called off.
    private var swipe: FeedDirection?
    /// What the client said it will show next.
    private var ahead: StreamID?
    /// When to preload; nil if that is done or not wanted.
    private(set) var deadline: MonotonicTime?
    /// Whether a stream that goes live has to be offered to this session, which lacks a focus, or a neighbour in its
    /// direction.
    private(set) var isHungry = true
    /// The highest number that the client gave a request; nil if it gave none.
    package private(set) var request: UInt32?
    private var budget: RateBudget

    package init(viewer: FeedViewer, _ configuration: Configuration) {
        self.viewer = viewer
        self.configuration = configuration
        budget = RateBudget(interval: configuration.messageInterval, burst: configuration.messageBurst)
    }

    /// Streams attached now.
    package var attachedCount: Int { (focus == nil ? 0 : 1) + (neighbour == nil ? 0 : 1) }
    /// Nil only while nothing is live that the viewer may see.
    package var focusedStream: StreamID? { focus?.stream }

    /// As the client is told.
    package var slots: [FeedNotice.SlotState] {
        let states = [
            focus.map { FeedNotice.SlotState(slot: $0.slot, stream: $0.stream, quality: .full) },
            neighbour.map { FeedNotice.SlotState(slot: $0.slot, stream: $0.stream, quality: .preview) },
        ]
        return states.compactMap(\.self).sorted { $0.slot.rawValue < $1.slot.rawValue }
    }

    // MARK: Inputs

    /// Begins on a stream, or on the first one there is.
    ///
    /// A wish that cannot be met is no reason to see nothing: it is refused in a notice, and the first stream plays.
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

    /// Takes a message of the client.
    ///
    /// One with a number is always answered by what the slots are, or refused: until then the client cannot know
    /// whether what it was told last is older than its request. Of those that are too many only the first is refused.
    /// - Parameter request: the message's number, if it has one.
    package mutating func receive(
        _ message: FeedMessage, request: UInt32? = nil, in scene: FeedScene, room: Int
    ) throws(FeedRefusal) -> [FeedEffect] {
        // Also of what is refused: the slots are after it what they were before.
        if let request { self.request = max(request, self.request ?? 0) }
        guard budget.spend(at: scene.now) else { throw .tooManyMessages }
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

    /// Lets go of what has ended or may not be seen any more, and moves the focus on if it is concerned.
    ///
    /// On to the neighbour if there is one: it stands in the direction of the last swipe and plays already. Else to the
    /// nearest stream in that direction, else in the other.
    /// - Parameters:
    ///   - ended: a stream that has just ended, and where it stood.
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
                session.isHungry = true
                return effects + [.tell(.empty)]
            }
            return effects + [.tell(.moved(from: lost.stream, to: focus.stream, loss))]
        }
    }

    private func loss(
        of stream: StreamID, _ ended: (stream: StreamID, rank: FeedRank)?, in scene: FeedScene
    ) -> FeedNotice.Loss? {
        guard scene.feed.isLive(stream), stream != ended?.stream else { return .ended }
        return scene.mayStay(viewer, stream) ? nil : .notPermitted
    }

    /// A stream went live, or may be seen now, which a session has waited for.
    package mutating func streamAppeared(in scene: FeedScene, room: Int) -> [FeedEffect] {
        guard isHungry else { return [] }
        if focus != nil {
            if deadline == nil { settle(at: scene.now) }
            return []
        }
        guard room >= 1, let first = next(from: nil, .forward, in: scene) else { return [] }
        return change { $0.attachFocus(first, at: scene.now) }
    }

    /// Preloads, if the focus has rested long enough.
    ///
    /// At the end of the list that is the stream before, the only one to swipe to, until there is one further on.
    package mutating func advance(in scene: FeedScene, room: Int) -> [FeedEffect] {
        guard let deadline, deadline <= scene.now else { return [] }
        self.deadline = nil
        guard let focus, neighbour == nil || isHungry, room >= 2 else { return [] }
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

    /// Lets everything go.
    package mutating func end() -> [FeedEffect] {
        var effects = releaseNeighbour()
        if let focus { effects.append(.release(focus.slot, focus.stream)) }
        focus = nil
        deadline = nil
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
            // In the other slot, as when it had been preloaded: the client's picture turns the same way.
            return effects + session.attachFocus(stream, after: left?.slot, at: scene.now)
        }
    }

    private func admit(_ stream: StreamID, in scene: FeedScene) throws(FeedRefusal) {
        guard scene.feed.isLive(stream) else { throw .notLive }
        guard scene.maySee(viewer, stream) else { throw .notPermitted }
    }

    /// Where a stream lies from the focus.
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

    /// Carries out a change and says what the slots are, if they are not what they were.
    private mutating func change(_ body: (inout FeedSession) -> [FeedEffect]) -> [FeedEffect] {
        let before = slots
        let effects = body(&self)
        return slots == before ? effects : effects + [tellSlots]
    }

    private var tellSlots: FeedEffect { .tell(.slots(slots, request: request)) }

    private mutating func settle(at now: MonotonicTime) {
        deadline = configuration.preload == .eager ? now + configuration.settleTime : nil
    }

    /// - Parameter slot: that of the focus before; both slots are empty now.
    private mutating func attachFocus(
        _ stream: StreamID, after slot: FeedSlot? = nil, at now: MonotonicTime
    ) -> [FeedEffect] {
        let attachment = Attachment(slot: slot?.other ?? .first, stream: stream)
        focus = attachment
        isHungry = false
        settle(at: now)
        return [.attach(attachment.slot, stream, .full)]
    }

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
        return [.attach(attachment.slot, stream, .preview)]
    }

    private mutating func releaseNeighbour() -> [FeedEffect] {
        guard let lost = neighbour else { return [] }
        neighbour = nil
        swipe = nil
        return [.release(lost.slot, lost.stream)]
    }
}
