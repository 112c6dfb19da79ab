import Base
import Stage
import StoryFeed

/// Everyone who follows the feed's list over a WebSocket.
///
/// All followers are notified of streams that go live; of other changes, only those who were sent the stream before.
/// So with many streams each follower gets news of what it shows, and not ten thousand viewer counts. Sending never
/// waits: a follower who reads too slowly misses changes, and gets a snapshot once its connection has drained.
struct FeedFollowers {
    /// One connection.
    private struct Follower {
        let end: any SyncFollower
        let reader: FeedReader
        /// The number of items in a snapshot.
        let limit: Int
        /// When the follower's token expires; nil for never.
        let expiry: WallTime?
        /// The streams whose changes it receives, the oldest first.
        var watched: [StreamID] = []
        /// Whether its connection was full, so that it waits for a snapshot.
        var isBehind = false
    }

    /// One part of a message; its JSON is made once for all followers who get it.
    private enum Piece {
        case added(JSON)
        case ended(StreamID)
        case moved(JSON)
        case edited(JSON)
        case viewers(StreamID, Int)
        case preview(StreamID, JSON)
        /// Too many streams moved to list each of them.
        case reordered
    }

    /// Streams that one follower may watch; beyond it, the oldest is forgotten.
    static let watchLimit = 500
    /// The time between two checks of which followers have caught up.
    private static let catchUpInterval = Duration.milliseconds(500)

    private let directory: StreamDirectory
    private var followers: [UInt64: Follower] = [:]
    /// `Follower.watched` the other way round: the followers of each stream.
    private var watchers: [StreamID: Set<UInt64>] = [:]
    /// The followers whose `isBehind` is set.
    private var behind: Set<UInt64> = []
    private var nextNumber: UInt64 = 1
    /// Increases with each set of changes, including those that do not concern every follower.
    private var version: UInt64 = 1
    /// Spreads the heartbeats of all followers over time.
    private var heartbeats = HeartbeatRound(at: .zero)
    /// When followers were last checked for having caught up.
    private var lastCatchUp = MonotonicTime.zero

    init(directory: StreamDirectory) {
        self.directory = directory
    }

    var count: Int { followers.count }

    // MARK: Followers

    /// Adds a follower and sends it a snapshot.
    /// - Returns: the follower's number.
    mutating func add(
        _ end: any SyncFollower, for reader: FeedReader, limit: Int, until expiry: WallTime?,
        of feed: StoryFeed, at now: MonotonicTime
    ) -> UInt64 {
        let number = nextNumber
        nextNumber += 1
        // A round that stood still while there were no followers begins again from now.
        if followers.isEmpty { heartbeats = HeartbeatRound(at: now) }
        heartbeats.add(number)
        followers[number] = Follower(end: end, reader: reader, limit: limit, expiry: expiry)
        sendSnapshot(of: feed, to: number)
        return number
    }

    /// Removes a follower; does not close its connection.
    mutating func remove(_ number: UInt64) {
        guard let follower = followers.removeValue(forKey: number) else { return }
        behind.remove(number)
        heartbeats.remove(number)
        for stream in follower.watched { unwatch(stream, number) }
    }

    /// Closes the connections of all followers.
    mutating func closeAll(_ reason: SyncClose) {
        for follower in followers.values { follower.end.close(reason) }
        (followers, watchers, behind) = ([:], [:], [])
        heartbeats.removeAll()
    }

    /// Makes a follower receive the changes of further streams, as far as it may see them.
    mutating func watch(_ streams: [StreamID], by number: UInt64, of feed: StoryFeed) {
        guard let reader = followers[number]?.reader else { return }
        for stream in streams.prefix(Self.watchLimit)
        where feed.isLive(stream) && reader.maySee(stream, by: directory) {
            watch(stream, number)
        }
    }

    private mutating func watch(_ stream: StreamID, _ number: UInt64) {
        guard watchers[stream, default: []].insert(number).inserted else { return }
        followers[number]?.watched.append(stream)
        if let oldest = followers[number]?.watched.first,
            let count = followers[number]?.watched.count, count > Self.watchLimit
        {
            followers[number]?.watched.removeFirst()
            unwatch(oldest, number)
        }
    }

    private mutating func unwatch(_ stream: StreamID, _ number: UInt64) {
        watchers[stream]?.remove(number)
        if watchers[stream]?.isEmpty == true { watchers[stream] = nil }
    }

    /// Stops sending a stream's changes to a follower.
    private mutating func forget(_ stream: StreamID, _ number: UInt64) {
        followers[number]?.watched.removeAll { $0 == stream }
        unwatch(stream, number)
    }

    // MARK: Telling

    /// Sends changes of the list, each to the followers that it concerns.
    mutating func announce(_ changes: [FeedChange]) {
        guard !followers.isEmpty, !changes.isEmpty else { return }
        var pieces: [Piece] = []
        // For each follower, the indices of its pieces.
        var concerned: [UInt64: [Int]] = [:]
        for change in changes {
            switch change {
            case .added(let item, let after):
                let numbers = followers.filter { $0.value.reader.maySee(item.id, by: directory) }.map(\.key)
                for number in numbers {
                    concerned[number, default: []].append(pieces.count)
                    watch(item.id, number)
                }
                pieces.append(.added(Self.placed("item", item.json(position: nil), after)))
            case .ended(let stream):
                for number in watchers[stream] ?? [] {
                    concerned[number, default: []].append(pieces.count)
                    forget(stream, number)
                }
                pieces.append(.ended(stream))
            case .moved(let stream, let after):
                add(
                    .moved(Self.placed("id", .string(stream.description), after)), stream, &pieces, &concerned
                )
            case .edited(let item):
                add(.edited(item.json(position: nil)), item.id, &pieces, &concerned)
            case .viewersChanged(let counts):
                for count in counts {
                    add(.viewers(count.stream, count.viewers), count.stream, &pieces, &concerned)
                }
            case .previewed(let stream, let preview):
                add(.preview(stream, preview.json), stream, &pieces, &concerned)
            case .reordered:
                for number in followers.keys { concerned[number, default: []].append(pieces.count) }
                pieces.append(.reordered)
            }
        }
        send(pieces, to: concerned)
    }

    /// Notifies followers who may no longer see a stream that it has ended for them.
    mutating func accessChanged(to stream: StreamID) {
        var concerned: [UInt64: [Int]] = [:]
        for number in watchers[stream] ?? []
        where followers[number]?.reader.mayStay(in: stream, by: directory) == false {
            concerned[number] = [0]
            forget(stream, number)
        }
        send([.ended(stream)], to: concerned)
    }

    /// Has followers whose bans were lifted read the list again, which has one more stream for them, and watch it.
    mutating func accessRestored(to stream: StreamID, for participants: Set<ParticipantID>) {
        var concerned: [UInt64: [Int]] = [:]
        for (number, follower) in followers {
            guard let id = follower.reader.sender(in: stream)?.id, participants.contains(id),
                follower.reader.maySee(stream, by: directory)
            else { continue }
            concerned[number] = [0]
        }
        // A page that named the stream just before the ban is not heard when it names it again.
        for number in concerned.keys { watch(stream, number) }
        send([.reordered], to: concerned)
    }

    /// Adds a piece for all followers of a stream; nothing if there are none.
    private func add(
        _ piece: Piece, _ stream: StreamID, _ pieces: inout [Piece], _ concerned: inout [UInt64: [Int]]
    ) {
        guard let numbers = watchers[stream] else { return }
        for number in numbers { concerned[number, default: []].append(pieces.count) }
        pieces.append(piece)
    }

    /// Sends each follower its pieces as one message.
    private mutating func send(_ pieces: [Piece], to concerned: [UInt64: [Int]]) {
        guard !concerned.isEmpty else { return }
        version += 1
        // Most followers get the same pieces, so each combination is encoded once.
        var texts: [[Int]: String] = [:]
        for (number, indices) in concerned where followers[number]?.isBehind == false {
            let text = texts[indices] ?? Self.text(indices.map { pieces[$0] }, version: version)
            texts[indices] = text
            send(text, to: number)
        }
    }

    /// - Parameter after: the stream before it in the list; nil for the first place.
    private static func placed(_ name: String, _ value: JSON, _ after: StreamID?) -> JSON {
        .object([name: value, "after": .text(after?.description)])
    }

    /// Joins pieces of the same kind into one list or map of the message.
    private static func text(_ pieces: [Piece], version: UInt64) -> String {
        var lists: [String: [JSON]] = [:]
        var maps: [String: [String: JSON]] = [:]
        var message: [String: JSON] = ["version": .integer(version)]
        for piece in pieces {
            switch piece {
            case .added(let json): lists["added", default: []].append(json)
            case .ended(let stream): lists["ended", default: []].append(.string(stream.description))
            case .moved(let json): lists["moved", default: []].append(json)
            case .edited(let json): lists["edited", default: []].append(json)
            case .viewers(let stream, let count):
                maps["viewers", default: [:]][stream.description] = .integer(count)
            case .preview(let stream, let json): maps["previews", default: [:]][stream.description] = json
            case .reordered: message["reordered"] = .bool(true)
            }
        }
        for (name, values) in lists { message[name] = .array(values) }
        for (name, values) in maps { message[name] = .object(values) }
        return FeedSyncNotice.change.text(message)
    }

    /// Sends a message, or marks the follower as behind if its connection is full.
    private mutating func send(_ text: String, to number: UInt64) {
        guard followers[number]?.end.send(text) == .full else { return }
        followers[number]?.isBehind = true
        behind.insert(number)
    }

    /// Sends the beginning of the list, and makes the follower watch the streams in it.
    private mutating func sendSnapshot(of feed: StoryFeed, to number: UInt64) {
        guard let follower = followers[number] else { return }
        let (reader, directory) = (follower.reader, directory)
        let streams: [StreamID]
        if case .one(let stream) = reader.scope {
            streams = feed.isLive(stream) && reader.maySee(stream, by: directory) ? [stream] : []
        } else {
            streams = Array(
                feed.streams.lazy.filter { reader.maySee($0, by: directory) }.prefix(follower.limit))
        }
        for stream in streams { watch(stream, number) }
        let text = FeedSyncNotice.snapshot.text([
            "version": .integer(version),
            "items": .array(streams.compactMap { feed.item($0)?.json(position: nil) }),
            // The whole list's length, unless the token is for one stream.
            "count": .integer(reader.scope == .all ? feed.count : streams.count),
        ])
        send(text, to: number)
    }

    // MARK: Time

    /// When `advance` has something to do; nil if nothing is due.
    var deadline: MonotonicTime? {
        let catchUp = behind.isEmpty ? nil : lastCatchUp + Self.catchUpInterval
        return [heartbeats.deadline, catchUp].compactMap(\.self).min()
    }

    /// Sends snapshots to followers who have caught up, and heartbeats; closes connections whose token has expired.
    mutating func advance(to now: Moment, of feed: StoryFeed) {
        if lastCatchUp + Self.catchUpInterval <= now.elapsed {
            lastCatchUp = now.elapsed
            for number in behind where followers[number]?.end.isDrained == true {
                behind.remove(number)
                followers[number]?.isBehind = false
                sendSnapshot(of: feed, to: number)
            }
        }
        // Tokens are checked with the heartbeats, so a connection may outlive its token by one round.
        let due = heartbeats.due(at: now.elapsed)
        guard !due.isEmpty else { return }
        let text = FeedSyncNotice.heartbeat.text(["version": .integer(version)])
        for number in due {
            guard let follower = followers[number] else { continue }
            if let expiry = follower.expiry, expiry <= now.wall {
                follower.end.close(.expired)
                remove(number)
            } else if !follower.isBehind {
                send(text, to: number)
            }
        }
    }
}
