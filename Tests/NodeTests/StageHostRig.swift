import Base
import Foundation
import Stage
import Store
import Synchronization
import TestSupport
import Testing

@testable import Node

/// A store whose disk is as slow, and as full, as the test says.
final class SlowStore: StreamStore {
    private struct State: Sendable {
        var isHeld = false
        /// The stream whose commits wait; nil for all.
        var heldStream: StreamID?
        /// What is not loaded yet.
        var heldLoad: StreamChoice?
        var failure: StoreError?
        var waiting: [@Sendable () -> Void] = []
        var commits: [StreamCommit] = []
        var loads: [StreamChoice] = []
    }

    private let store = MemoryStore()
    private let state = Watched(State())

    /// Commits wait until `release`, all of them or those of one stream.
    func hold(_ stream: StreamID? = nil) {
        state.change { state in
            state.isHeld = true
            state.heldStream = stream
        }
    }

    /// Whoever loads this waits until `release`.
    func hold(loading choice: StreamChoice) { state.change { $0.heldLoad = choice } }

    /// Carries out what waits, in order, and does not hold any more.
    func release() {
        let waiting = state.change { state in
            state.isHeld = false
            state.heldLoad = nil
            defer { state.waiting = [] }
            return state.waiting
        }
        for work in waiting { work() }
    }

    func fail(with error: StoreError?) { state.change { $0.failure = error } }

    var commits: [StreamCommit] { state.value.commits }

    /// Returns once a commit waits for `release`.
    func commitIsHeld() async throws { try await state.wait { $0.waiting.count == 1 } }

    /// Returns once a commit of a stream has come through.
    func commitIsThrough(of stream: StreamID) async throws {
        try await state.wait { state in state.commits.contains { $0.stream == stream } }
    }

    /// Returns once somebody has asked for this.
    func isAsked(for choice: StreamChoice) async throws { try await state.wait { $0.loads.contains(choice) } }

    /// What it was asked for.
    var loads: [StreamChoice] { state.value.loads }

    func submit(
        _ commit: StreamCommit, completion: @escaping @Sendable (Result<Void, StoreError>) -> Void
    ) {
        let work: @Sendable () -> Void = { [self] in
            if let failure = state.value.failure {
                completion(.failure(failure))
                return
            }
            state.change { $0.commits.append(commit) }
            store.submit(commit, completion: completion)
        }
        let isHeld = state.change { state in
            let waits = state.isHeld && (state.heldStream ?? commit.stream) == commit.stream
            if waits { state.waiting.append(work) }
            return waits
        }
        if !isHeld { work() }
    }

    func load(_ choice: StreamChoice) async throws(StoreError) -> [StoredStream] {
        state.change { $0.loads.append(choice) }
        try? await state.wait { $0.heldLoad != choice }
        return try await store.load(choice)
    }
    func list(_ query: StreamQuery) async throws(StoreError) -> [StreamListing] {
        try await store.list(query)
    }
    func answer(to key: IdempotencyKey, at now: Int64) async throws(StoreError) -> IdempotentAnswer? {
        try await store.answer(to: key, at: now)
    }
    func ledgerEntry(_ key: String, of stream: StreamID) async throws(StoreError) -> [UInt8]? {
        try await store.ledgerEntry(key, of: stream)
    }
    func ledger(of stream: StreamID, after number: Int, limit: Int) async throws(StoreError) -> [[UInt8]] {
        try await store.ledger(of: stream, after: number, limit: limit)
    }
    func archive(of stream: StreamID, _ query: ArchiveQuery) async throws(StoreError) -> [[UInt8]] {
        try await store.archive(of: stream, query)
    }
    func archived(of stream: StreamID, writtenBefore time: Int64) async throws(StoreError) -> Int {
        try await store.archived(of: stream, writtenBefore: time)
    }
    func ended(
        before time: Int64, after last: StreamListing?, limit: Int
    ) async throws(StoreError) -> [StreamListing] {
        try await store.ended(before: time, after: last, limit: limit)
    }
    func forget(_ streams: [StreamID], endedBefore time: Int64) async throws(StoreError) -> [StreamID] {
        try await store.forget(streams, endedBefore: time)
    }
    func purgeAnswers(at now: Int64) async throws(StoreError) { try await store.purgeAnswers(at: now) }
    var outbox: any Outbox { store.outbox }
    var statistics: StoreStatistics { store.statistics }
    func close() async { await store.close() }
}

/// A follower that keeps what it hears, merges it, and reads as fast as the test says.
final class TestFollower: SyncFollower {
    struct State {
        var messages: [[String: JSON]] = []
        var known: JSON = .object([:])
        var version: UInt64 = 0
        var you: JSON?
        var isFull = false
        var closed: SyncClose?
        var snapshots = 0
    }

    let state = Mutex(State())

    func send(_ text: String) -> SyncDelivery {
        state.withLock { state in
            guard state.closed == nil else { return .closed }
            guard !state.isFull else { return .full }
            guard let message = try? JSONDecoder().decode([String: JSON].self, from: Data(text.utf8)) else {
                Issue.record("no JSON: \(text)")
                return .queued
            }
            Self.take(message, &state)
            return .queued
        }
    }

    private static func take(_ message: [String: JSON], _ state: inout State) {
        state.messages.append(message)
        var members = message
        members["type"] = nil
        members["version"] = nil
        switch message["type"] {
        case .string("snapshot"):
            state.snapshots += 1
            state.known = merged(.object([:]), .object(members))
        case .string("change"): state.known = merged(state.known, .object(members))
        case .string("you"): state.you = message["you"]
        default: return
        }
        guard case .number(let number) = message["version"] else { return }
        let version = UInt64(number)
        #expect(version > state.version, "versions grow")
        state.version = version
    }

    /// - Source: RFC 7396 §2.
    static func merged(_ target: JSON, _ patch: JSON) -> JSON {
        guard case .object(let changes) = patch else { return patch }
        var members: [String: JSON] = [:]
        if case .object(let present) = target { members = present }
        for (name, value) in changes {
            members[name] = value == .null ? nil : merged(members[name] ?? .null, value)
        }
        return .object(members)
    }

    var isDrained: Bool { state.withLock { !$0.isFull } }
    func close(_ reason: SyncClose) { state.withLock { $0.closed = $0.closed ?? reason } }

    var known: JSON { state.withLock { $0.known } }
    var version: UInt64 { state.withLock { $0.version } }
    var types: [String] {
        state.withLock { state in
            state.messages.compactMap { if case .string(let type) = $0["type"] { type } else { nil } }
        }
    }
    func forget() { state.withLock { $0.messages = [] } }
}

/// One stream's host on a store and a clock that the test moves.
struct HostRig {
    let store = SlowStore()
    let clock = Shared(Moment(elapsed: .zero, wall: WallTime(milliseconds: 1_800_000_000_000)))
    let effects = Shared<[StageEffect]>([])
    let directory = StreamDirectory()
    let host: StreamHost

    static let ann = sender("ann", .host)
    static let bob = sender("bob", .viewer)

    init() throws {
        host = StreamHost(
            try #require(StreamID("show")),
            Self.environment(store, directory, clock: clock, effects: effects))
    }

    static func environment(
        _ store: any StreamStore, _ directory: StreamDirectory, clock: Shared<Moment>,
        effects: Shared<[StageEffect]>
    ) -> StreamHost.Environment {
        StreamHost.Environment(
            store: store, log: .silent, directory: directory, now: { clock.value }, runsTimer: false
        ) { effect, _ in effects.change { $0.append(effect) } }
    }

    static func sender(
        _ name: String, _ authority: Stage.Sender.Authority, link: Stage.Link? = nil
    ) -> Stage.Sender {
        guard let id = ParticipantID(name) else { preconditionFailure("\(name) is no identity") }
        return Stage.Sender(id: id, name: name.capitalized, authority: authority, link: link)
    }

    func create() async throws {
        _ = try await host.create(host: Self.ann.id, name: "Ann", edit: StageEdit())
    }

    func wait(_ duration: Duration) async {
        pass(duration)
        await host.tick()
    }

    /// Moves the clock, and nobody is woken by it.
    func pass(_ duration: Duration) {
        clock.change { moment in
            moment = Moment(
                elapsed: moment.elapsed + duration,
                wall: WallTime(
                    milliseconds: moment.wall.milliseconds + duration.wholeNanoseconds / 1_000_000))
        }
    }
}

/// A value that several tasks share.
final class Shared<Value: Sendable>: Sendable {
    private let mutex: Mutex<Value>
    init(_ value: Value) { mutex = Mutex(value) }
    var value: Value { mutex.withLock { $0 } }
    func change(_ body: (inout Value) -> Void) { mutex.withLock { body(&$0) } }
}
