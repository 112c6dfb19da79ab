import Base
import Forwarding
import Stage
import StoryFeed

/// The feed, everybody who watches it, and who may see what.
///
/// What changes comes in here first, and what follows from it goes out as directives, to be carried out in order.
struct FeedDesk {
    typealias Directive = FeedAudience.Directive

    private(set) var feed: StoryFeed
    private(set) var audience: FeedAudience
    /// Feed sessions.
    private(set) var places: [SessionID: FeedPlace] = [:]
    /// The same by viewer.
    private var readers: [FeedViewer: [SessionID: FeedReader]] = [:]
    /// Live streams, also those beyond what the list holds, with whom each had banned as of its latest news.
    private var bans: [StreamID: [ParticipantID: WallTime]] = [:]
    let directory: StreamDirectory
    private(set) var counters = FeedCounters()

    /// - Parameter tag: random; tells this process's cursors from others'.
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

    /// Who is in stays.
    mutating func setSessionLimit(_ limit: Int) { audience.setSessionLimit(limit) }

    // MARK: Looking

    /// A part of the list.
    mutating func page(
        limit: Int, after cursor: FeedCursor?, for reader: FeedReader, at now: MonotonicTime
    ) throws(CursorRefusal) -> FeedPage {
        let directory = directory
        return try feed.page(limit: limit, after: cursor, at: now) { reader.maySee($0, by: directory) }
    }

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

    mutating func enter(
        _ id: SessionID, _ place: FeedPlace, preload: FeedPreload, on wish: StreamID?, at now: MonotonicTime
    ) throws(FeedRefusal) -> [Directive] {
        places[id] = place
        readers[place.viewer, default: [:]][id] = place.reader
        do throws(FeedRefusal) {
            return try audience.begin(
                id, viewer: place.viewer, preload: preload, on: wish, in: scene(at: now))
        } catch {
            forget(id)
            throw error
        }
    }

    /// Counts a player outside the feed.
    mutating func enterPlayer(_ id: SessionID, of viewer: FeedViewer) throws(FeedRefusal) -> [Directive] {
        try audience.beginPlayer(id, viewer: viewer)
    }

    mutating func leave(_ id: SessionID) -> [Directive] {
        defer { forget(id) }
        return audience.end(id)
    }

    private mutating func forget(_ id: SessionID) {
        guard let place = places.removeValue(forKey: id) else { return }
        readers[place.viewer]?[id] = nil
        if readers[place.viewer]?.isEmpty == true { readers[place.viewer] = nil }
    }

    /// Feed sessions of a viewer, until the last of them has gone.
    func sessions(of viewer: FeedViewer) -> [SessionID] {
        readers[viewer].map { Array($0.keys) } ?? []
    }

    mutating func setConnected(_ id: SessionID) { places[id]?.isConnected = true }

    mutating func setPresent(_ id: SessionID, in stream: StreamID?) { places[id]?.present = stream }

    // MARK: Messages

    mutating func perform(
        _ message: FeedMessage, request: UInt32?, for id: SessionID, at now: MonotonicTime
    ) throws(FeedRefusal) -> [Directive] {
        counters.note(message)
        do throws(FeedRefusal) {
            return try audience.perform(message, request: request, for: id, in: scene(at: now))
        } catch {
            counters.refused &+= 1
            throw error
        }
    }

    mutating func receive(
        _ message: FeedMessage, request: UInt32?, from id: SessionID, at now: MonotonicTime
    ) -> [Directive] {
        counters.note(message)
        let directives = audience.receive(message, request: request, from: id, in: scene(at: now))
        if case .tell(.refused) = directives.first?.effect { counters.refused &+= 1 }
        return directives
    }

    // MARK: Streams

    /// What follows from news of streams.
    struct Outcome {
        var directives: [Directive] = []
        var changes: [FeedChange] = []
        /// Streams that have just gone live.
        var appeared: [StreamID] = []
        /// Streams that somebody may not see any more.
        var restricted: [StreamID] = []
    }

    /// Takes in what is new about streams; nil for one that nobody knows any more.
    mutating func update(_ news: [StreamID: StreamSnapshot?], at now: MonotonicTime) -> Outcome {
        var outcome = Outcome()
        // Whether there is something to see for those who wait.
        var isMore = false
        for (id, snapshot) in news.sorted(by: { $0.key.description < $1.key.description }) {
            guard let snapshot, snapshot.state == .live else {
                bans[id] = nil
                guard let departure = feed.end(id) else { continue }
                outcome.changes.append(departure.change)
                outcome.directives += audience.streamEnded(departure, in: scene(at: now))
                continue
            }
            let wasListed = feed.isLive(id)
            // A feed that is full lists no more; the stream can be watched all the same.
            outcome.changes += (try? feed.goLive(FeedItem(snapshot))) ?? []
            if !wasListed, feed.isLive(id) { isMore = true }
            guard let before = bans.updateValue(snapshot.banned, forKey: id) else {
                outcome.appeared.append(id)
                continue
            }
            // To look at all who watch is dear, and other news come often.
            guard before != snapshot.banned else { continue }
            if snapshot.banned.keys.contains(where: { before[$0] == nil }) { outcome.restricted.append(id) }
            if before.keys.contains(where: { snapshot.banned[$0] == nil }) { isMore = true }
        }
        for id in outcome.restricted {
            outcome.directives += audience.accessChanged(to: id, in: scene(at: now))
        }
        if isMore { outcome.directives += audience.streamAppeared(in: scene(at: now)) }
        return outcome
    }

    /// Whether a stream is live, as of the latest news.
    func isLive(_ stream: StreamID) -> Bool { bans[stream] != nil }

    mutating func setPreview(_ preview: FeedPreview, of stream: StreamID) -> [FeedChange] {
        feed.setPreview(stream, preview)
    }

    // MARK: Time

    var deadline: MonotonicTime? {
        [feed.deadline, audience.deadline].compactMap(\.self).min()
    }

    mutating func advance(to now: MonotonicTime) -> Outcome {
        var outcome = Outcome()
        outcome.changes = feed.advance(to: now)
        outcome.directives = audience.advance(in: scene(at: now))
        return outcome
    }
}

/// What feed viewers did.
package struct FeedCounters: Equatable, Sendable {
    /// Messages, over HTTP too.
    package var peeks: UInt64 = 0
    /// Messages, over HTTP too.
    package var focuses: UInt64 = 0
    /// Messages, over HTTP too.
    package var releases: UInt64 = 0
    /// Of these, those that were not followed; of too many messages only the first is counted.
    package var refused: UInt64 = 0
    /// Sessions that live now.
    package var sessions = 0
    /// That follow the list now.
    package var followers = 0
    /// Live streams in the list.
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
    /// What the session's worker has to do; nil for what is not its business.
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
