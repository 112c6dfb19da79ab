import Base
import Foundation

/// A low-latency HLS player without sockets: decides what to fetch, processes responses, and models the playback.
///
/// It reloads the playlist by blocking requests, requests the next part before that exists, and loads one resource at a
/// time. If a server has no parts, or does not block, it polls as often as HLS prescribes.
/// - Source: RFC 8216bis §6.3 (clients), §6.2.5.2 (blocking reloads), §B.1 (low latency).
struct HLSPlayer {
    /// What a request is for.
    enum Kind: Equatable, Sendable {
        case playlist, initialization, media
    }

    struct Request: Equatable, Sendable {
        /// Unique among this player's requests.
        let number: UInt32
        let url: String
        let kind: Kind
    }

    /// What a response meant.
    enum Event: Equatable, Sendable {
        /// The first media has arrived; the value is in nanoseconds since the first request.
        case started(Int64)
        case loaded(Kind, bytes: Int)
        /// An initialization segment, which a decoder needs before the media that follows.
        case initialization([UInt8])
        /// Loaded media, and the position on the buffer's time line at which it starts.
        case media([UInt8], at: Int64)
        /// The age of a part's first picture when the part arrived, by the playlist's date, in milliseconds.
        case arrived(age: Int64)
        /// A failed request, with the reason.
        case refused(String)
        /// What came next is no longer available, so playback continues near the live edge.
        case rejoined
        /// The stream is over, and all of it was loaded.
        case ended
    }

    /// Parses the bytes of a playlist from an address.
    typealias Reading = ([UInt8], String) throws(PlaylistFailure) -> PlaylistDocument

    /// The pause after a failure.
    private static let retryDelay = Duration.seconds(1)
    /// The longest pause in seconds, even if the server wants a longer one.
    private static let longestRetry = 10.0

    /// Media that was loaded by a hint; its duration is unknown until a playlist lists it.
    private struct Unpriced {
        let item: MediaPlaylist.Position
        let url: String
        /// When it arrived.
        let at: Moment
    }

    /// The request for media or an initialization segment that is under way.
    private struct Loading {
        let request: Request
        /// Nil for an initialization segment.
        let position: MediaPlaylist.Position?
        /// Whether the playlist only announced it.
        let isHinted: Bool
    }

    /// Of the playlist; replaced by that of a variant once a multivariant playlist was read.
    private var url: String
    private let isDecoding: Bool
    /// When the first request was made.
    private var began: MonotonicTime?
    private var playlist: MediaPlaylist?
    /// What to load next; nil before the first playlist, and after losing the place.
    private var next: MediaPlaylist.Position?
    /// The initialization segment that the next media needs.
    private var initialization: String?
    /// The one that the decoder has.
    private var loadedInitialization: String?
    private var unpriced: Unpriced?
    /// The address of a hint that was not fulfilled; it is not requested again.
    private var deadHint: String?
    /// The playlist request that is under way.
    private var reloading: Request?
    /// Whether the next reload must not block, because the last one failed.
    private var asksPlainly = false
    private var loading: Loading?
    private var number: UInt32 = 0
    /// No requests before this time, after a failure.
    private var retryAt = MonotonicTime.zero
    /// No reload before this time, if the server does not block.
    private var reloadAt = MonotonicTime.zero
    private(set) var buffer = PlaybackBuffer()
    private(set) var hasStarted = false
    private(set) var hasEnded = false

    /// - Parameters:
    ///   - url: of a multivariant or a media playlist.
    ///   - isDecoding: whether events have the media's bytes.
    init(_ url: String, isDecoding: Bool) {
        self.url = url
        self.isDecoding = isDecoding
    }

    /// Stalls of the playback since the last call.
    mutating func takeStalls() -> PlaybackBuffer.Stalls { buffer.takeStalls() }

    // MARK: Asking

    /// The requests to send now: at most a reload and one for media.
    mutating func requests(at now: MonotonicTime) -> [Request] {
        buffer.advance(to: now)
        guard !hasEnded, now >= retryAt else { return [] }
        if began == nil { began = now }
        return [reload(at: now), load()].compactMap(\.self)
    }

    private mutating func make(_ url: String, _ kind: Kind) -> Request {
        number &+= 1
        return Request(number: number, url: url, kind: kind)
    }

    /// A reload of the playlist, unless one is under way, it is too early, or the playlist is final.
    private mutating func reload(at now: MonotonicTime) -> Request? {
        guard reloading == nil, now >= reloadAt, playlist?.hasEnded != true else { return nil }
        var address = url
        // A blocking server answers as soon as the first item that is not listed yet exists.
        if let playlist, next != nil, playlist.canBlock, !asksPlainly {
            let end = playlist.end
            address += url.contains("?") ? "&" : "?"
            address += "_HLS_msn=\(end.number)"
            if playlist.partTarget != nil { address += "&_HLS_part=\(end.part)" }
            // A delta update leaves out old segments, so only a player near the end can apply it.
            if playlist.canSkip, let next, next.number >= end.number - 1 { address += "&_HLS_skip=YES" }
        }
        reloading = make(address, .playlist)
        return reloading
    }

    /// A request for the next media, or for the initialization segment that it needs first.
    private mutating func load() -> Request? {
        guard loading == nil, unpriced == nil, let playlist, let next else { return nil }
        switch playlist.item(at: next) {
        case .listed(let listed):
            guard let request = loadInitialization(listed.initialization) else {
                return load(listed.url, at: listed.position, isHinted: false)
            }
            return request
        case .hinted(let url):
            // Without blocking, a request for a hinted part could fail because the part does not exist yet.
            guard playlist.canBlock, url != deadHint else { return nil }
            guard let request = loadInitialization(playlist.segments.last?.initialization) else {
                return load(url, at: next, isHinted: true)
            }
            return request
        case .awaited, .gone: return nil
        }
    }

    /// A request for an initialization segment.
    /// - Returns: nil if the decoder has it already, or none is needed.
    private mutating func loadInitialization(_ wanted: String?) -> Request? {
        initialization = wanted ?? initialization
        guard let initialization, initialization != loadedInitialization else { return nil }
        let request = make(initialization, .initialization)
        loading = Loading(request: request, position: nil, isHinted: false)
        return request
    }

    private mutating func load(_ url: String, at position: MediaPlaylist.Position, isHinted: Bool) -> Request
    {
        let request = make(url, .media)
        loading = Loading(request: request, position: position, isHinted: isHinted)
        return request
    }

    // MARK: Answers

    /// Processes the response to a request; one to an unknown request is ignored.
    mutating func receive(
        _ answer: FetchedAnswer, to number: UInt32, at now: Moment, by read: Reading
    ) -> [Event] {
        buffer.advance(to: now.elapsed)
        return takeIn(answer, to: number, at: now, by: read) + conclude(at: now.elapsed)
    }

    /// Assigns the response to the reload or to the media request that is under way.
    private mutating func takeIn(
        _ answer: FetchedAnswer, to number: UInt32, at now: Moment, by read: Reading
    ) -> [Event] {
        if let request = reloading, request.number == number {
            reloading = nil
            return receivePlaylist(answer, at: now, by: read)
        }
        guard let load = loading, load.request.number == number else { return [] }
        loading = nil
        guard answer.status == 200 else {
            let isMissing = answer.status == 404 || answer.status == 410
            if isMissing, load.isHinted {
                // Servers may announce parts that never come (§4.4.5.3). The next playlist lists what does.
                deadHint = load.request.url
                return []
            }
            // A resource that no longer exists is not requested again.
            if isMissing { skip(load) }
            return refuse(answer, at: now.elapsed)
        }
        let loaded = Event.loaded(load.request.kind, bytes: answer.count)
        guard let position = load.position else {
            loadedInitialization = load.request.url
            return isDecoding ? [loaded, .initialization(answer.bytes)] : [loaded]
        }
        return [loaded] + receiveMedia(answer, of: load, at: position, now)
    }

    /// Processes media, whose duration is known immediately if the playlist lists it.
    private mutating func receiveMedia(
        _ answer: FetchedAnswer, of load: Loading, at position: MediaPlaylist.Position, _ now: Moment
    ) -> [Event] {
        var events: [Event] = []
        if !hasStarted {
            hasStarted = true
            events.append(.started(now.elapsed.nanoseconds(since: began ?? now.elapsed)))
        }
        if isDecoding { events.append(.media(answer.bytes, at: buffer.end)) }
        unpriced = load.isHinted ? Unpriced(item: position, url: load.request.url, at: now) : nil
        switch playlist?.item(at: position) {
        case .listed(let listed): events += take(listed, from: load.request.url, at: now)
        case .hinted, .awaited: break
        // The final playlist does not list what was announced: that is behind the end.
        case .gone where playlist?.hasEnded == true: unpriced = nil
        case .gone, nil: events += rejoin()
        }
        return events
    }

    /// Puts loaded media into the buffer, now that a playlist has its duration.
    private mutating func take(
        _ listed: MediaPlaylist.Listed, from url: String, at now: Moment
    ) -> [Event] {
        let arrived = unpriced?.at
        unpriced = nil
        guard listed.url == url else {
            // The hint named another resource than the one that is listed now: load that one.
            next = listed.position
            return []
        }
        buffer.append(listed.duration, at: now.elapsed)
        next = listed.next
        guard let arrived, let date = listed.date else { return [] }
        return [.arrived(age: arrived.wall.milliseconds - date)]
    }

    /// Processes a response to a reload.
    private mutating func receivePlaylist(
        _ answer: FetchedAnswer, at now: Moment, by read: Reading
    ) -> [Event] {
        guard answer.status == 200 else {
            // Perhaps the server does not know what the request waited for: the next one does not block.
            asksPlainly = true
            return refuse(answer, at: now.elapsed)
        }
        let loaded = Event.loaded(.playlist, bytes: answer.count)
        do throws(PlaylistFailure) {
            switch try read(answer.bytes, url) {
            case .multivariant(let variants):
                guard playlist == nil, let best = variants.max(by: { $0.bandwidth < $1.bandwidth }) else {
                    throw .unsupported("a nested multivariant playlist")
                }
                url = best.url
                // Playlists that refer to each other in a circle are followed slowly.
                reloadAt = number > 4 ? now.elapsed + Self.retryDelay : now.elapsed
                return [loaded]
            case .media(let new): return [loaded] + take(new, at: now)
            }
        } catch {
            retryAt = now.elapsed + Self.retryDelay
            return [loaded, .refused("\(error)")]
        }
    }

    /// Uses a new media playlist: decides when to reload, where to begin, and whether the place is still there.
    private mutating func take(_ new: MediaPlaylist, at now: Moment) -> [Event] {
        let isSame = playlist?.end == new.end && playlist?.hasEnded == new.hasEnded
        playlist = new
        asksPlainly = false
        if isSame || !new.canBlock {
            // A server with nothing new is not polled without a pause, whether it blocks or not (§6.3.4).
            let pause = new.canBlock ? new.partTarget ?? new.targetDuration : new.targetDuration
            reloadAt = now.elapsed.advanced(byNanoseconds: isSame ? pause / 2 : pause)
        }
        var events: [Event] = []
        if next == nil { begin(new) }
        if let waiting = unpriced { events += price(waiting, by: new, at: now) }
        if let next, loading == nil, unpriced == nil, new.item(at: next) == .gone, !new.hasEnded {
            events += rejoin()
            begin(new)
        }
        return events
    }

    /// Ends the playback once everything was loaded that will ever exist.
    private mutating func conclude(at now: MonotonicTime) -> [Event] {
        guard !hasEnded, let playlist, playlist.hasEnded, loading == nil, unpriced == nil else { return [] }
        // A final playlist is not loaded again, so that a place that was lost is not found again.
        if let next, playlist.item(at: next) != .gone { return [] }
        hasEnded = true
        buffer.finish(at: now)
        return [.ended]
    }

    /// Looks up the duration of media that was loaded by a hint.
    private mutating func price(
        _ waiting: Unpriced, by playlist: MediaPlaylist, at now: Moment
    ) -> [Event] {
        switch playlist.item(at: waiting.item) {
        case .listed(let listed): return take(listed, from: waiting.url, at: now)
        case .hinted, .awaited: return []
        case .gone:
            unpriced = nil
            return []
        }
    }

    /// Selects where to start; the buffer's time line begins there only for the first media.
    private mutating func begin(_ playlist: MediaPlaylist) {
        guard let start = playlist.start else { return }
        next = start.position
        if !hasStarted { buffer.begin(at: start.offset) }
    }

    /// Loses the place because it is no longer listed.
    private mutating func rejoin() -> [Event] {
        leave()
        return [.rejoined]
    }

    /// Goes on behind media that does not exist: in a final playlist with the next item, else near the live edge.
    private mutating func skip(_ load: Loading) {
        guard let playlist, playlist.hasEnded, let position = load.position,
            case .listed(let listed) = playlist.item(at: position)
        else { return leave() }
        next = listed.next
    }

    /// Forgets the place, so that the next playlist decides where to begin, and reloads without a pause.
    private mutating func leave() {
        next = nil
        unpriced = nil
        reloadAt = .zero
    }

    /// Pauses after a failed request, for as long as the server wants within limits.
    private mutating func refuse(_ answer: FetchedAnswer, at now: MonotonicTime) -> [Event] {
        let delay = min(answer.retryAfter ?? 1, Self.longestRetry)
        retryAt = now.advanced(byNanoseconds: Int64(max(delay, 0.1) * 1e9))
        return [.refused(answer.status == 0 ? answer.error : "HTTP \(answer.status)")]
    }
}
