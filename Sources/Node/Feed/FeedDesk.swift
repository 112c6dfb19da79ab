import Base
import Forwarding
import Stage
import StoryFeed

/// The feed's list, all who watch the feed, and which streams each of them may see.
///
/// Every change comes in here first. What follows from it goes out as directives, to be performed in order.
struct FeedDesk {
    typealias Directive = FeedAudience.Directive

    private(set) var feed: StoryFeed
    private(set) var audience: FeedAudience
    /// Every feed session.
    private(set) var places: [SessionID: FeedPlace] = [:]
    /// The same by viewer; sessions of one viewer may have different tokens, and so different rights.
    private var readers: [FeedViewer: [SessionID: FeedReader]] = [:]
    /// The bans of each live stream as of its latest news, including live streams that the full list leaves out.
    private var bans: [StreamID: [ParticipantID: WallTime]] = [:]
    let directory: StreamDirectory
    private(set) var counters = FeedCounters()

    /// - Parameters:
    ///   - sessionLimit: of feed sessions and players together.
    ///   - tag: a random number by which cursors of this process differ from those of others.
    init(
        directory: StreamDirectory, sessionLimit: Int, weights: FeedWeights = FeedWeights(), tag: UInt32
    ) {
        self.directory = directory
        var settings = StoryFeed.Configuration(tag: tag)
        settings.weights = weights
        feed = StoryFeed(settings)
        var configuration = FeedAudience.Configuration()
        configuration.sessionLimit = sessionLimit
        audience = FeedAudience(configuration)
    }

    /// Applies to sessions that begin from now on; present sessions stay.
    mutating func setSessionLimit(_ limit: Int) { audience.setSessionLimit(limit) }

    // MARK: Looking

    /// A page of the list, without streams that the reader may not see.
    mutating func page(
        limit: Int, after cursor: FeedCursor?, for reader: FeedReader, at now: MonotonicTime
    ) throws(CursorRefusal) -> FeedPage {
        let directory = directory
        return try feed.page(limit: limit, after: cursor, at: now) { reader.maySee($0, by: directory) }
    }

    /// What the feed's state machines decide by: the list, the time, and the viewers' rights.
    ///
    /// A viewer may see what any of their sessions may see.
    private func scene(at now: MonotonicTime) -> FeedScene {
        let (readers, directory) = (readers, directory)
        return FeedScene(
            feed: feed, now: now,
            maySee: { viewer, stream in
                readers[viewer]?.values.contains { $0.maySee(stream, by: directory) } ?? false
            },
            mayStay: { viewer, stream in
                readers[viewer]?.values.contains { $0.mayStay(in: stream, by: directory) } ?? false
            })
    }

    // MARK: Sessions

    /// Admits a feed session and chooses the stream it begins with.
    /// - Parameter wish: the stream to begin with; nil for the first one.
    mutating func enter(
        _ id: SessionID, _ place: FeedPlace, preload: FeedPreload, on wish: StreamID?, at now: MonotonicTime
    ) throws(FeedRefusal) -> [Directive] {
        places[id] = place
        readers[place.viewer, default: [:]][id] = place.reader
        do throws(FeedRefusal) {
            return try audience.begin(
                id, viewer: place.viewer, preload: preload, on: wish, in: scene(at: now))
        } catch {
            // Nothing may remain of a session that was refused.
            forget(id)
            throw error
        }
    }

    /// Counts a player outside the feed toward the limits of sessions.
    mutating func enterPlayer(_ id: SessionID, of viewer: FeedViewer) throws(FeedRefusal) -> [Directive] {
        try audience.beginPlayer(id, viewer: viewer)
    }

    /// Ends a session's place; its rights still count for the directives that this returns.
    mutating func leave(_ id: SessionID) -> [Directive] {
        defer { forget(id) }
        return audience.end(id)
    }

    private mutating func forget(_ id: SessionID) {
        guard let place = places.removeValue(forKey: id) else { return }
        readers[place.viewer]?[id] = nil
        if readers[place.viewer]?.isEmpty == true { readers[place.viewer] = nil }
    }

    /// The feed sessions of a viewer, including one that is about to end.
    func sessions(of viewer: FeedViewer) -> [SessionID] {
        readers[viewer].map { Array($0.keys) } ?? []
    }

    mutating func setConnected(_ id: SessionID) { places[id]?.isConnected = true }

    mutating func setPresent(_ id: SessionID, in stream: StreamID?) { places[id]?.present = stream }

    // MARK: Messages

    /// Applies a message that came over HTTP.
    /// - Parameter isBusy: whether too many of the viewer's directives wait; the message is refused then.
    /// - Throws: why the message is refused, for the answer.
    mutating func perform(
        _ message: FeedMessage, request: UInt32?, for id: SessionID, isBusy: Bool, at now: MonotonicTime
    ) throws(FeedRefusal) -> [Directive] {
        counters.note(message)
        do throws(FeedRefusal) {
            return try audience.perform(
                message, request: request, for: id, in: scene(at: now), isBusy: isBusy)
        } catch {
            counters.refused &+= 1
            throw error
        }
    }

    /// Applies a message that came on a control channel; a refusal is one of the directives.
    /// - Parameter isBusy: whether too many of the viewer's directives wait; the message is refused then.
    mutating func receive(
        _ message: FeedMessage, request: UInt32?, from id: SessionID, isBusy: Bool, at now: MonotonicTime
    ) -> [Directive] {
        counters.note(message)
        let directives = audience.receive(
            message, request: request, from: id, in: scene(at: now), isBusy: isBusy)
        if case .tell(.refused) = directives.first?.effect { counters.refused &+= 1 }
        return directives
    }

    // MARK: Streams

    /// What follows from news of streams, or from the passing of time.
    struct Outcome {
        var directives: [Directive] = []
        var changes: [FeedChange] = []
        /// Streams that are live now and were not before.
        var appeared: [StreamID] = []
        /// Streams with new bans, which some viewers may have to leave.
        var restricted: [StreamID] = []
        /// Participants whose bans were lifted.
        var unbanned: [(stream: StreamID, participants: Set<ParticipantID>)] = []
    }

    /// Handles news of streams; nil for a stream that is no longer known.
    mutating func update(_ news: [StreamID: StreamSnapshot?], at now: MonotonicTime) -> Outcome {
        var outcome = Outcome()
        // Whether viewers who wait for a stream may have one to see now.
        var isMore = false
        // Sorted, so that the result does not depend on hashing.
        for (id, snapshot) in news.sorted(by: { $0.key.description < $1.key.description }) {
            guard let snapshot, snapshot.state == .live else {
                bans[id] = nil
                guard let departure = feed.end(id) else { continue }
                outcome.changes.append(departure.change)
                outcome.directives += audience.streamEnded(departure, in: scene(at: now))
                continue
            }
            let wasListed = feed.isLive(id)
            // A full feed lists no more streams; a stream that is not listed can still be watched.
            outcome.changes += (try? feed.goLive(FeedItem(snapshot))) ?? []
            if !wasListed, feed.isLive(id) { isMore = true }
            guard let before = bans.updateValue(snapshot.banned, forKey: id) else {
                outcome.appeared.append(id)
                continue
            }
            // Checking all viewers is expensive, and most news do not concern bans.
            guard before != snapshot.banned else { continue }
            if snapshot.banned.keys.contains(where: { before[$0] == nil }) { outcome.restricted.append(id) }
            let unbanned = before.keys.filter { snapshot.banned[$0] == nil }
            guard !unbanned.isEmpty else { continue }
            isMore = true
            outcome.unbanned.append((id, Set(unbanned)))
        }
        for id in outcome.restricted {
            outcome.directives += audience.accessChanged(to: id, in: scene(at: now))
        }
        if isMore { outcome.directives += audience.streamAppeared(in: scene(at: now)) }
        return outcome
    }

    /// Whether a stream is live as of its latest news, listed or not.
    func isLive(_ stream: StreamID) -> Bool { bans[stream] != nil }

    mutating func setPreview(_ preview: FeedPreview, of stream: StreamID) -> [FeedChange] {
        feed.setPreview(stream, preview)
    }

    // MARK: Time

    /// When `advance` has something to do; nil if nothing is due.
    var deadline: MonotonicTime? {
        [feed.deadline, audience.deadline].compactMap(\.self).min()
    }

    /// Applies what is due by now to the list and to the viewers.
    mutating func advance(to now: MonotonicTime) -> Outcome {
        var outcome = Outcome()
        outcome.changes = feed.advance(to: now)
        outcome.directives = audience.advance(in: scene(at: now))
        return outcome
    }
}

/// What feed viewers have done, and how many there are.
package struct FeedCounters: Equatable, Sendable {
    /// Messages since the start, including those over HTTP.
    package var peeks: UInt64 = 0
    /// Messages since the start, including those over HTTP.
    package var focuses: UInt64 = 0
    /// Messages since the start, including those over HTTP.
    package var releases: UInt64 = 0
    /// How many of these were refused; of a run of too many messages only the first is counted.
    package var refused: UInt64 = 0
    /// Current feed sessions.
    package var sessions = 0
    /// Current followers of the list.
    package var followers = 0
    /// Live streams in the list now.
    package var streams = 0

    mutating func note(_ message: FeedMessage) {
        switch message.kind {
        case .peek: peeks &+= 1
        case .focus: focuses &+= 1
        case .release: releases &+= 1
        }
    }
}

extension FeedItem {
    /// The list entry of a live stream.
    init(_ snapshot: StreamSnapshot) {
        self.init(id: snapshot.id, startedAt: snapshot.effectiveStart)
        title = snapshot.details.title
        host = snapshot.host
        hostName = snapshot.hostName ?? snapshot.host?.description
        isPaused = snapshot.isPaused
        gate = snapshot.details.gate?.json ?? .null
        allowsHLS = snapshot.details.hls != .off
        viewers = snapshot.viewers
        pinnedPlace = snapshot.placement.pinned
        boost = snapshot.placement.boost
    }
}

extension FeedEffect {
    /// The command for the session's worker; nil for effects that do not concern a worker.
    /// - Parameter requested: when the viewer asked for it; not passed on with a preview.
    func command(to id: SessionID, requested: MonotonicTime?) -> WorkerCommand? {
        switch self {
        case .attach(let slot, let stream, let quality):
            .seat(
                id, pair: slot.rawValue, stream, isPreview: quality == .preview,
                requested: quality == .preview ? nil : requested)
        case .promote(let slot, let stream):
            .seat(id, pair: slot.rawValue, stream, isPreview: false, requested: requested)
        case .release(let slot, _):
            .seat(id, pair: slot.rawValue, nil, isPreview: false, requested: nil)
        case .tell, .close: nil
        }
    }
}
