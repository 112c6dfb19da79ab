import Base
import Foundation

/// A player of low-latency HLS without its sockets: says what to fetch, takes what came, and knows what would be seen.
///
/// Reloads the playlist by requests that wait, asks for the part that comes next before it is there, and loads one
/// thing at a time. Where a server has no parts, or answers at once, it asks as often as HLS wants it.
/// - Source: RFC 8216bis §6.3 (clients), §6.2.5.2 (blocking reloads), §B.1 (low latency).
struct HLSPlayer {
    enum Kind: Equatable, Sendable {
        case playlist, initialization, media
    }

    struct Request: Equatable, Sendable {
        /// Unlike those of this player's other requests.
        let number: UInt32
        let url: String
        let kind: Kind
    }

    enum Event: Equatable, Sendable {
        /// The first media is there, so many nanoseconds after the first request.
        case started(Int64)
        case loaded(Kind, bytes: Int)
        /// A decoder needs this before the media that follows.
        case initialization([UInt8])
        /// What was loaded, and where on the buffer's time line it begins.
        case media([UInt8], at: Int64)
        /// How old the first picture of a part was when the part came, by the playlist's date; in milliseconds.
        case arrived(age: Int64)
        /// An answer that is none, in words.
        case refused(String)
        /// What came next is not to be had, so that it began anew near the end.
        case rejoined
        case ended
    }

    /// Turns the bytes of a playlist into what they say.
    typealias Reading = ([UInt8], String) throws(PlaylistFailure) -> PlaylistDocument

    /// After a refusal that does not say when to come again.
    private static let retryDelay = Duration.seconds(1)
    /// In seconds, whatever a server says.
    private static let longestRetry = 10.0

    /// What a hint led to, whose duration no playlist has told yet.
    private struct Unpriced {
        let item: MediaPlaylist.Position
        let url: String
        let at: Moment
    }

    private struct Loading {
        let request: Request
        /// Nil for an initialization segment.
        let position: MediaPlaylist.Position?
        let isHinted: Bool
    }

    private var url: String
    private let isDecoding: Bool
    private var began: MonotonicTime?
    private var playlist: MediaPlaylist?
    private var next: MediaPlaylist.Position?
    private var initialization: String?
    private var loadedInitialization: String?
    private var unpriced: Unpriced?
    /// A hint that led to nothing, and is not followed again.
    private var deadHint: String?
    private var reloading: Request?
    private var asksPlainly = false
    private var loading: Loading?
    private var number: UInt32 = 0
    private var retryAt = MonotonicTime.zero
    /// Not before, where the server does not make a reload wait.
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

    /// How often and for how long it stood still, since this was asked.
    mutating func takeStalls() -> PlaybackBuffer.Stalls { buffer.takeStalls() }

    // MARK: Asking

    /// What is to be fetched now.
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

    private mutating func reload(at now: MonotonicTime) -> Request? {
        guard reloading == nil, now >= reloadAt, playlist?.hasEnded != true else { return nil }
        var address = url
        // A server blocks until what is not listed yet is there.
        if let playlist, next != nil, playlist.canBlock, !asksPlainly {
            let end = playlist.end
            address += url.contains("?") ? "&" : "?"
            address += "_HLS_msn=\(end.number)"
            if playlist.partTarget != nil { address += "&_HLS_part=\(end.part)" }
            // Only who is near the end knows all that is left out.
            if playlist.canSkip, let next, next.number >= end.number - 1 { address += "&_HLS_skip=YES" }
        }
        reloading = make(address, .playlist)
        return reloading
    }

    private mutating func load() -> Request? {
        guard loading == nil, unpriced == nil, let playlist, let next else { return nil }
        switch playlist.item(at: next) {
        case .listed(let listed):
            guard let request = loadInitialization(listed.initialization) else {
                return load(listed.url, at: listed.position, isHinted: false)
            }
            return request
        case .hinted(let url):
            guard playlist.canBlock, url != deadHint else { return nil }
            guard let request = loadInitialization(playlist.segments.last?.initialization) else {
                return load(url, at: next, isHinted: true)
            }
            return request
        case .awaited, .gone: return nil
        }
    }

    /// - Returns: nil where it is there.
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

    /// Takes in what came of a request.
    mutating func receive(
        _ answer: FetchedAnswer, to number: UInt32, at now: Moment, by read: Reading
    ) -> [Event] {
        buffer.advance(to: now.elapsed)
        return takeIn(answer, to: number, at: now, by: read) + conclude(at: now.elapsed)
    }

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
                // Servers may announce what never comes (§4.4.5.3): the playlist will say what does.
                deadHint = load.request.url
                return []
            }
            // What is not there any more is not asked for again.
            if isMissing { leave() }
            return refuse(answer, at: now.elapsed)
        }
        let loaded = Event.loaded(load.request.kind, bytes: answer.count)
        guard let position = load.position else {
            loadedInitialization = load.request.url
            return isDecoding ? [loaded, .initialization(answer.bytes)] : [loaded]
        }
        return [loaded] + receiveMedia(answer, of: load, at: position, now)
    }

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
        case .gone, nil: events += rejoin()
        }
        return events
    }

    /// What was loaded is listed, too, so that its duration is known.
    private mutating func take(
        _ listed: MediaPlaylist.Listed, from url: String, at now: Moment
    ) -> [Event] {
        let arrived = unpriced?.at
        unpriced = nil
        guard listed.url == url else {
            // Something else came than the hint said: that is what counts.
            next = listed.position
            return []
        }
        buffer.append(listed.duration, at: now.elapsed)
        next = listed.next
        guard let arrived, let date = listed.date else { return [] }
        return [.arrived(age: arrived.wall.milliseconds - date)]
    }

    private mutating func receivePlaylist(
        _ answer: FetchedAnswer, at now: Moment, by read: Reading
    ) -> [Event] {
        guard answer.status == 200 else {
            // The next reload waits for nothing: it may be what was waited for that the server does not know.
            asksPlainly = true
            return refuse(answer, at: now.elapsed)
        }
        let loaded = Event.loaded(.playlist, bytes: answer.count)
        do throws(PlaylistFailure) {
            switch try read(answer.bytes, url) {
            case .multivariant(let variants):
                guard playlist == nil, let best = variants.max(by: { $0.bandwidth < $1.bandwidth }) else {
                    throw .unsupported("a multivariant playlist in it")
                }
                url = best.url
                // Whoever is led round in a circle is led slowly.
                reloadAt = number > 4 ? now.elapsed + Self.retryDelay : now.elapsed
                return [loaded]
            case .media(let new): return [loaded] + take(new, at: now)
            }
        } catch {
            retryAt = now.elapsed + Self.retryDelay
            return [loaded, .refused("\(error)")]
        }
    }

    private mutating func take(_ new: MediaPlaylist, at now: Moment) -> [Event] {
        let isSame = playlist?.end == new.end && playlist?.hasEnded == new.hasEnded
        playlist = new
        asksPlainly = false
        if isSame || !new.canBlock {
            // Blocking or not, a server that has nothing new is not asked without end (§6.3.4).
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

    /// Finds out whether all was loaded that there will ever be.
    private mutating func conclude(at now: MonotonicTime) -> [Event] {
        guard !hasEnded, let playlist, playlist.hasEnded, loading == nil, unpriced == nil, let next,
            playlist.item(at: next) == .gone
        else { return [] }
        hasEnded = true
        buffer.finish(at: now)
        return [.ended]
    }

    /// Finds out how long what a hint led to is.
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

    private mutating func begin(_ playlist: MediaPlaylist) {
        guard let start = playlist.start else { return }
        next = start.position
        if !hasStarted { buffer.begin(at: start.offset) }
    }

    private mutating func rejoin() -> [Event] {
        leave()
        return [.rejoined]
    }

    /// Forgets where it was, so that the next playlist says where to begin.
    private mutating func leave() {
        next = nil
        unpriced = nil
        reloadAt = .zero
    }

    private mutating func refuse(_ answer: FetchedAnswer, at now: MonotonicTime) -> [Event] {
        let delay = min(answer.retryAfter ?? 1, Self.longestRetry)
        retryAt = now.advanced(byNanoseconds: Int64(max(delay, 0.1) * 1e9))
        return [.refused(answer.status == 0 ? answer.error : "HTTP \(answer.status)")]
    }
}
