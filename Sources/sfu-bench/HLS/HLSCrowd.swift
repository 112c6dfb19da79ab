import Base
import Foundation
import Net
import Peer

/// The HLS viewers of one thread: their players, and the connections that they share.
///
/// Belongs to its thread; results are handed over through `HLSShared`.
final class HLSCrowd {
    /// A viewer: what it watches, and when it begins.
    struct Ticket: Sendable {
        /// Of a playlist, absolute.
        var url: String
        /// A header line for each request, such as the one with the token; nil for none.
        var header: String?
        /// When the viewer begins, in nanoseconds from the start of the run.
        var delay: Int64
    }

    /// What a thread is to do.
    struct Setup: Sendable {
        /// Index in `HLSShared.Sums.standing`.
        var thread: Int
        var tickets: [Ticket]
        /// Whether media is decoded to read the marks in its pictures.
        var isDecoding: Bool
        /// Whether viewers load whole segments, as players without low latency do.
        var loadsWholeSegments: Bool
        var began: MonotonicTime
        var clock: WallClock
    }

    private struct Viewer {
        let ticket: Ticket
        var player: HLSPlayer
        /// Nil for a viewer that only loads.
        let watcher: MarkWatcher?
    }

    /// Remembers parsed playlists, since many viewers receive the same one.
    private struct Memory {
        let loadsWholeSegments: Bool
        private var documents: [String: PlaylistDocument] = [:]
        /// Playlists that are remembered; when there are more, all are forgotten.
        private static let limit = 64

        init(loadsWholeSegments: Bool) { self.loadsWholeSegments = loadsWholeSegments }

        mutating func read(_ bytes: [UInt8], _ url: String) throws(PlaylistFailure) -> PlaylistDocument {
            // Playlists of different streams may have the same text; their relative addresses lead elsewhere.
            let key = url + "\n" + String(decoding: bytes, as: UTF8.self)
            if let known = documents[key] { return known }
            guard let base = URL(string: url) else { throw .malformed("address") }
            var document = try PlaylistDocument(parsing: bytes, at: base)
            if loadsWholeSegments, case .media(let playlist) = document {
                document = .media(playlist.ofWholeSegments)
            }
            if documents.count >= Self.limit { documents.removeAll(keepingCapacity: true) }
            documents[key] = document
            return document
        }
    }

    /// Connections of one viewer: a blocking reload, and a part or segment.
    private static let connectionsEach = 2
    /// In bytes.
    private static let playlistLimit = 4 << 20
    /// In bytes.
    private static let mediaLimit = 64 << 20
    /// Milliseconds between two passes over all viewers.
    private static let tick = 50
    /// A viewer without anything to show for longer than this has stopped receiving.
    private static let patience = Duration.seconds(5)

    private let setup: Setup
    private let shared: HLSShared
    private let fetcher: HTTPFetcher
    private var viewers: [Viewer]
    /// Viewers before this index have begun; they are in the order of their delays.
    private var begun = 0
    private var memory: Memory
    /// What happened since the last time that results were handed over.
    private var news = HLSTally()
    private var lookAt = MonotonicTime.zero

    init(_ setup: Setup, shared: HLSShared) throws {
        self.setup = setup
        self.shared = shared
        memory = Memory(loadsWholeSegments: setup.loadsWholeSegments)
        fetcher = try HTTPFetcher(connections: max(setup.tickets.count * Self.connectionsEach, 1))
        viewers = setup.tickets.map { ticket in
            Viewer(
                ticket: ticket, player: HLSPlayer(ticket.url, isDecoding: setup.isDecoding),
                watcher: setup.isDecoding ? MarkWatcher() : nil)
        }
    }

    /// Waits for responses, processes them, starts viewers that are due, and now and then passes over all viewers.
    func turn() {
        fetcher.wait(milliseconds: Self.tick) { number, answer in
            receive(answer, to: number)
        }
        let now = moment
        while begun < viewers.count,
            setup.began.advanced(byNanoseconds: viewers[begun].ticket.delay) <= now.elapsed
        {
            begun += 1
            ask(begun - 1, at: now.elapsed)
        }
        guard now.elapsed >= lookAt else { return }
        lookAt = now.elapsed + .milliseconds(Self.tick)
        look(at: now.elapsed)
    }

    /// Both clocks at the same moment: the wall clock is compared with dates in playlists.
    private var moment: Moment {
        let now = MonotonicClock.now()
        return Moment(
            elapsed: now, wall: WallTime(milliseconds: setup.clock.unixNanoseconds(at: now) / 1_000_000))
    }

    /// Passes over all viewers: sends requests that have become due, and hands the results over.
    private func look(at now: MonotonicTime) {
        var standing = 0
        for index in 0..<begun {
            ask(index, at: now)
            let stalls = viewers[index].player.takeStalls()
            news.stalls.count += stalls.count
            news.stalls.nanoseconds += stalls.nanoseconds
            let buffer = viewers[index].player.buffer
            if let since = buffer.standsSince, since + Self.patience < now { standing += 1 }
            guard let watcher = viewers[index].watcher else { continue }
            watcher.show(buffer, at: setup.clock.unixNanoseconds(at: now))
            news.marks.add(watcher.takeTally())
        }
        shared.add(news, standing: standing, of: setup.thread)
        news = HLSTally()
    }

    // MARK: Requests

    /// Sends the requests that a viewer wants now.
    ///
    /// The token of a request has the viewer's index in its upper 32 bits and the player's number in the lower ones.
    private func ask(_ index: Int, at now: MonotonicTime) {
        for request in viewers[index].player.requests(at: now) {
            let isMedia = request.kind != .playlist
            let isSent = fetcher.get(
                request.url, number: UInt64(index) << 32 | UInt64(request.number),
                header: viewers[index].ticket.header, limit: isMedia ? Self.mediaLimit : Self.playlistLimit,
                // Media that is not decoded is only counted.
                keepsBytes: !isMedia || setup.isDecoding)
            // The player must get an answer to each request, else it would wait for ever.
            guard !isSent else { continue }
            take(
                viewers[index].player.receive(
                    FetchedAnswer(error: "cannot make a request to this address"), to: request.number,
                    at: moment, by: { bytes, url throws(PlaylistFailure) in try memory.read(bytes, url) }),
                of: index)
        }
    }

    /// Passes a response to its viewer, which may then want more.
    private func receive(_ answer: FetchedAnswer, to number: UInt64) {
        let index = Int(number >> 32)
        guard viewers.indices.contains(index) else { return }
        let now = moment
        take(
            viewers[index].player.receive(
                answer, to: UInt32(truncatingIfNeeded: number), at: now,
                by: { bytes, url throws(PlaylistFailure) in try memory.read(bytes, url) }), of: index)
        ask(index, at: now.elapsed)
    }

    /// Counts events of a player, and passes media to its decoder.
    private func take(_ events: [HLSPlayer.Event], of index: Int) {
        for event in events {
            switch event {
            case .started(let after):
                news.started += 1
                news.start.add(after)
            case .loaded(let kind, let bytes):
                news.bytes += UInt64(max(bytes, 0))
                switch kind {
                case .playlist: news.playlists += 1
                case .initialization: news.initializations += 1
                case .media: news.media += 1
                }
            case .initialization(let bytes): viewers[index].watcher?.begin(bytes)
            case .media(let bytes, let start): viewers[index].watcher?.take(bytes, at: start)
            case .arrived(let age): news.arrival.add(Duration.milliseconds(age).wholeNanoseconds)
            case .refused(let reason): news.refuse(reason)
            case .rejoined: news.rejoined += 1
            case .ended: news.ended += 1
            }
        }
    }
}
