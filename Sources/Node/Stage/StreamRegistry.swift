import Base
import Store

/// The streams in memory, each with its host, and the names that mean nothing.
///
/// Waits for nothing itself: whoever looks a name up in the store does so between `place(of:)` and `settle`.
struct StreamRegistry {
    /// What is known of a name.
    enum Place {
        case open(StreamHost)
        /// The store was asked, and nobody made it or waits for it.
        case absent
        /// Whoever asks waits for this, and says by `settle` or `abandon` what came of it.
        case lookup(Lookup)
    }

    /// A name that is being looked up in the store.
    typealias Lookup = Task<StreamHost?, any Error>

    let environment: StreamHost.Environment
    private var hosts: [StreamID: StreamHost] = [:]
    private var lookups: [StreamID: Lookup] = [:]
    private var absent = AbsentStreams()
    /// Keys of requests that are being answered.
    private var requests: Set<IdempotencyKey> = []
    private var nextForgetting = MonotonicTime.zero

    /// Ended streams in lists at most; the one that ended first is forgotten before others.
    static let endedLimit = 10_000
    /// Seconds for which a stream that was made by publishing can still be asked about after its end.
    private static let memory = 600

    /// Streams in memory, made or waited for.
    private static let hostLimit = 50_000
    /// Names that are looked up in the store at once, and those of them that strangers may ask for.
    private static let lookupLimit = 256
    private static let strangersLookups = 16

    init(_ environment: StreamHost.Environment) { self.environment = environment }

    var store: any StreamStore { environment.store }

    var count: Int { hosts.count }

    /// All of them, in no order.
    var all: [StreamHost] { Array(hosts.values) }

    /// Nil for a stream that is not in memory.
    subscript(_ id: StreamID) -> StreamHost? { hosts[id] }

    // MARK: Finding

    /// The place of a name: in memory, nowhere, or in the store.
    /// - Parameter isStranger: whether whoever asks has no token. Strangers may ask for any name; few of them at the
    ///   same time, because commits wait in the same queue.
    mutating func place(of id: StreamID, isStranger: Bool) throws(StageRefusal) -> Place {
        if let host = openHost(of: id) { return .open(host) }
        guard !absent.contains(id) else { return .absent }
        if let lookup = lookups[id] { return .lookup(lookup) }
        let limit = isStranger ? Self.strangersLookups : Self.lookupLimit
        guard hosts.count < Self.hostLimit, lookups.count < limit else { throw .overloaded }
        let lookup = Lookup { [environment] in
            try await environment.store.load(.one(id)).first.map { try StreamHost($0, environment) }
        }
        lookups[id] = lookup
        return .lookup(lookup)
    }

    /// A lookup has ended; whoever else waited for it has been here before, or comes after.
    /// - Returns: the stream's place; nil for a name that means nothing.
    mutating func settle(_ lookup: Lookup, of id: StreamID, found host: StreamHost?) -> StreamHost? {
        if lookups[id] == lookup {
            lookups[id] = nil
            if let host { hosts[id] = host } else { absent.insert(id) }
        }
        return openHost(of: id) ?? host
    }

    /// A lookup has failed: whoever asks next begins another.
    mutating func abandon(_ lookup: Lookup, of id: StreamID) {
        if lookups[id] == lookup { lookups[id] = nil }
    }

    private func openHost(of id: StreamID) -> StreamHost? {
        hosts[id].flatMap { $0.isClosed ? nil : $0 }
    }

    // MARK: Making and forgetting

    /// A place for a name that the store does not know, for those who may make it or wait until somebody does.
    mutating func make(_ id: StreamID) throws(StageRefusal) -> StreamHost {
        // Whoever waited with us may have been here before.
        if let host = openHost(of: id) { return host }
        guard hosts.count < Self.hostLimit else { throw .overloaded }
        let host = StreamHost(id, environment)
        add(host)
        return host
    }

    /// Takes in a stream that was read from the store, or is needed again.
    mutating func add(_ host: StreamHost) {
        hosts[host.id] = host
        absent.remove(host.id)
    }

    /// Has a stream in memory for those who come, if there is none under its name already.
    mutating func keep(_ host: StreamHost) {
        if hosts[host.id] == nil { add(host) }
    }

    /// A host has closed because nobody needed it.
    mutating func remove(_ host: StreamHost, because reason: StreamHost.IdleStream) {
        guard hosts[host.id] === host else { return }
        hosts[host.id] = nil
        if reason == .unmade { absent.insert(host.id) }
    }

    /// Forgets ended streams that need not be remembered; once a minute, because that looks at all that there were.
    mutating func forgetEnded(at now: Moment) {
        guard now.elapsed >= nextForgetting else { return }
        nextForgetting = now.elapsed + .seconds(60)
        environment.directory.forgetEnded(
            by: now.wall.advanced(bySeconds: -Self.memory), keeping: Self.endedLimit)
    }

    // MARK: Requests that may be repeated

    /// - Returns: false while another request with this key is being answered.
    mutating func begin(_ key: IdempotencyKey) -> Bool { requests.insert(key).inserted }

    mutating func end(_ key: IdempotencyKey) { requests.remove(key) }
}
