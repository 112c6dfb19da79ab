import Base
import Store

/// The streams in memory, each with its host, and the names that are known to be unused.
///
/// Does not wait: the caller awaits a lookup between `place(of:)` and `settle` or `abandon`.
struct StreamRegistry {
    /// What is known of a name.
    enum Place {
        /// The stream is in memory.
        case open(StreamHost)
        /// The store does not contain the name, and no client waits for it.
        case absent
        /// The store is being asked: await the task, then call `settle`, or `abandon` if it fails.
        case lookup(Lookup)
    }

    /// A query to the store, shared by all requests for the name.
    typealias Lookup = Task<StreamHost?, any Error>

    let environment: StreamHost.Environment
    private var hosts: [StreamID: StreamHost] = [:]
    private var lookups: [StreamID: Lookup] = [:]
    private var absent = AbsentStreams()
    /// Idempotency keys of requests that are being answered.
    private var requests: Set<IdempotencyKey> = []
    /// When ended streams are next removed from lists.
    private var nextForgetting = MonotonicTime.zero

    /// Ended streams in lists, at most; the one that ended first is removed first.
    static let endedLimit = 10_000
    /// How long a stream that was made by publishing can be queried after its end, in seconds.
    private static let memory = 600

    /// Streams in memory, at most, including names for which clients wait.
    private static let hostLimit = 50_000
    /// Queries to the store at the same time.
    private static let lookupLimit = 256
    /// Queries at the same time up to which requests without a token may start another.
    private static let strangersLookups = 16

    init(_ environment: StreamHost.Environment) { self.environment = environment }

    var store: any StreamStore { environment.store }

    /// Streams in memory.
    var count: Int { hosts.count }

    /// The hosts of all streams in memory, in no order.
    var all: [StreamHost] { Array(hosts.values) }

    /// The host of a stream; nil if it is not in memory.
    subscript(_ id: StreamID) -> StreamHost? { hosts[id] }

    // MARK: Finding

    /// Finds a name: in memory, nowhere, or in the store.
    /// - Parameter isStranger: whether the request has no token. Such requests may ask for any name, and commits wait
    ///   in the same queue as queries, so few of these may run at the same time.
    /// - Throws: `overloaded`.
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

    /// Takes note of a lookup's result.
    ///
    /// Several requests may wait for one lookup; only the first call changes anything.
    /// - Returns: the stream's host; nil for an unused name.
    mutating func settle(_ lookup: Lookup, of id: StreamID, found host: StreamHost?) -> StreamHost? {
        if lookups[id] == lookup {
            lookups[id] = nil
            if let host { hosts[id] = host } else { absent.insert(id) }
        }
        // Another request may have made the stream in the meantime.
        return openHost(of: id) ?? host
    }

    /// Takes note of a lookup's failure: the next request begins another.
    mutating func abandon(_ lookup: Lookup, of id: StreamID) {
        if lookups[id] == lookup { lookups[id] = nil }
    }

    private func openHost(of id: StreamID) -> StreamHost? {
        hosts[id].flatMap { $0.isClosed ? nil : $0 }
    }

    // MARK: Making and forgetting

    /// Makes a host for a name that the store does not contain, for a client that may create the stream or waits for
    /// it.
    mutating func make(_ id: StreamID) throws(StageRefusal) -> StreamHost {
        // Another request that waited for the same lookup may have made it already.
        if let host = openHost(of: id) { return host }
        guard hosts.count < Self.hostLimit else { throw .overloaded }
        let host = StreamHost(id, environment)
        add(host)
        return host
    }

    /// Adds a stream that was read from the store, or is needed again.
    mutating func add(_ host: StreamHost) {
        hosts[host.id] = host
        absent.remove(host.id)
    }

    /// Adds a host, unless there is one for the name already.
    mutating func keep(_ host: StreamHost) {
        if hosts[host.id] == nil { add(host) }
    }

    /// Removes a host that has closed because it was idle.
    mutating func remove(_ host: StreamHost, because reason: StreamHost.IdleStream) {
        // A new host may have taken its place.
        guard hosts[host.id] === host else { return }
        hosts[host.id] = nil
        if reason == .unmade { absent.insert(host.id) }
    }

    /// Removes old ended streams from lists; at most once a minute, because it looks at all streams.
    mutating func forgetEnded(at now: Moment) {
        guard now.elapsed >= nextForgetting else { return }
        nextForgetting = now.elapsed + .seconds(60)
        environment.directory.forgetEnded(
            by: now.wall.advanced(bySeconds: -Self.memory), keeping: Self.endedLimit)
    }

    // MARK: Requests that may be repeated

    /// Marks an idempotency key as being answered.
    /// - Returns: false while another request with this key is being answered.
    mutating func begin(_ key: IdempotencyKey) -> Bool { requests.insert(key).inserted }

    mutating func end(_ key: IdempotencyKey) { requests.remove(key) }
}
