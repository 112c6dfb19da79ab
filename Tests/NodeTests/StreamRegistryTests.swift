import Base
import Stage
import Store
import TestSupport
import Testing

@testable import Node

@Suite struct `The register of streams` {
    private var registry: StreamRegistry
    private let environment: StreamHost.Environment
    private let show: StreamID

    init() throws {
        show = try #require(StreamID("show"))
        environment = HostRig.environment(
            SlowStore(), StreamDirectory(),
            clock: Shared(Moment(elapsed: .zero, wall: WallTime(milliseconds: 0))), effects: Shared([]))
        registry = StreamRegistry(environment)
    }

    /// The lookup that a name's place is; nil where it is known already.
    private mutating func lookUp(
        _ id: StreamID, isStranger: Bool = false
    ) throws -> StreamRegistry.Lookup? {
        let place = try registry.place(of: id, isStranger: isStranger)
        return if case .lookup(let lookup) = place { lookup } else { nil }
    }

    private mutating func meansNothing(_ id: StreamID) throws -> Bool {
        if case .absent = try registry.place(of: id, isStranger: true) { true } else { false }
    }

    private mutating func openHost(of id: StreamID) throws -> StreamHost? {
        if case .open(let host) = try registry.place(of: id, isStranger: true) { host } else { nil }
    }

    @Test mutating func `looks a name up once for all who ask meanwhile`() async throws {
        let first = try #require(try lookUp(show))
        let second = try #require(try lookUp(show, isStranger: true))
        #expect(first == second)
        let found = try await first.value
        #expect(found == nil)
        let (one, other) = (
            registry.settle(first, of: show, found: found), registry.settle(second, of: show, found: found)
        )
        #expect(one == nil && other == nil)
        let isAbsent = try meansNothing(show)
        #expect(isAbsent && registry.count == 0)
    }

    @Test mutating func `gives all who waited the host that came first`() throws {
        let waited = try #require(try lookUp(show))
        let (early, late) = (StreamHost(show, environment), StreamHost(show, environment))
        let first = registry.settle(waited, of: show, found: early)
        let second = registry.settle(waited, of: show, found: late)
        #expect(first === early && second === early)
        let open = try openHost(of: show)
        #expect(open === early && registry.all.count == 1)
        // Who was admitted meanwhile keeps the host that they have, and the register its own.
        registry.keep(late)
        #expect(registry[show] === early)
    }

    @Test mutating func `begins another lookup where one has failed`() throws {
        let failed = try #require(try lookUp(show))
        registry.abandon(failed, of: show)
        let next = try #require(try lookUp(show))
        #expect(next != failed)
        // Whoever hears of it late spoils nothing.
        registry.abandon(failed, of: show)
        let again = try lookUp(show)
        #expect(again == next)
    }

    @Test mutating func `lets few strangers ask at the same time, and others still do`() throws {
        for number in 0..<16 {
            let lookup = try lookUp(try #require(StreamID("s\(number)")), isStranger: true)
            #expect(lookup != nil)
        }
        var refusal: StageRefusal?
        do { _ = try registry.place(of: show, isStranger: true) } catch { refusal = error }
        #expect(refusal == .overloaded)
        let pending = try lookUp(try #require(StreamID("s3")), isStranger: true)
        #expect(pending != nil, "what is looked up already costs nothing")
        let known = try lookUp(show)
        #expect(known != nil)
        // Those with a token have a limit, too.
        for number in 17..<256 { _ = try lookUp(try #require(StreamID("s\(number)"))) }
        refusal = nil
        let last = try #require(StreamID("last"))
        do { _ = try registry.place(of: last, isStranger: false) } catch { refusal = error }
        #expect(refusal == .overloaded)
    }

    @Test mutating func `makes a name's host once`() throws {
        let host = try registry.make(show)
        let again = try registry.make(show)
        #expect(again === host && registry[show] === host)
        let waited = try lookUp(try #require(StreamID("other")))
        #expect(waited != nil && registry.count == 1)
    }

    @Test mutating func `remembers that nobody made what was waited for`() async throws {
        let host = try registry.make(show)
        let reason = try #require(await host.closeIfIdle())
        #expect(reason == .unmade)
        let closed = try openHost(of: show)
        #expect(closed == nil, "who comes now gets no host that has closed")
        registry.remove(host, because: reason)
        let isAbsent = try meansNothing(show)
        #expect(isAbsent && registry.count == 0)
        let next = try registry.make(show)
        let open = try openHost(of: show)
        #expect(open === next && next !== host)
        // The one before it, told of late, takes nothing away.
        registry.remove(host, because: .unmade)
        #expect(registry[show] === next)
    }

    @Test mutating func `asks the store again for a stream that has ended`() throws {
        let host = try registry.make(show)
        registry.remove(host, because: .ended)
        let lookup = try lookUp(show)
        #expect(lookup != nil)
    }

    @Test mutating func `takes a request that is repeated once at a time`() {
        let key = IdempotencyKey(scope: "ann POST /v1/streams", key: "1")
        let (first, second) = (registry.begin(key), registry.begin(key))
        #expect(first && !second)
        let other = registry.begin(IdempotencyKey(scope: "bob POST /v1/streams", key: "1"))
        #expect(other)
        registry.end(key)
        let third = registry.begin(key)
        #expect(third)
    }
}
