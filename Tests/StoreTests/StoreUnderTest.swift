import Base
import Foundation
import Store

/// The stores that must mean the same.
enum StoreUnderTest: String, CaseIterable, Sendable {
    case memory
    case sqlite

    func run(
        limits: OutboxLimits = OutboxLimits(), _ body: (any StreamStore) async throws -> Void
    ) async throws {
        switch self {
        case .memory:
            let store = MemoryStore(limits: limits)
            try await body(store)
            await store.close()
        case .sqlite:
            try await withDirectory { directory in
                var settings = SQLiteSettings(directory: directory)
                settings.outbox = limits
                let store = try await SQLiteStore.open(settings, log: .silent)
                do {
                    try await body(store)
                } catch {
                    await store.close()
                    throw error
                }
                await store.close()
            }
        }
    }
}

/// Gives `body` a directory that is gone afterwards.
func withDirectory(_ body: (String) async throws -> Void) async throws {
    let directory = FileManager.default.temporaryDirectory.appending(path: "rostrum-store-\(UUID())")
    try FileManager.default.createDirectory(
        at: directory, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    defer { try? FileManager.default.removeItem(at: directory) }
    try await body(directory.path)
}

func stream(_ name: String) -> StreamID {
    guard let id = StreamID(name) else { preconditionFailure("\(name) names no stream") }
    return id
}

func listing(
    _ name: String, state: String = "live", host: String = "ann", createdAt: Int64 = 1_000,
    endedAt: Int64? = nil
) -> StreamListing {
    StreamListing(
        stream: stream(name), state: state, host: host, title: "Title of \(name)", createdAt: createdAt,
        startsAt: nil, endedAt: endedAt)
}

/// A first commit.
func creation(_ name: String, _ records: [[UInt8]] = [[1]], createdAt: Int64 = 1_000) -> StreamCommit {
    var commit = StreamCommit(stream: stream(name), basis: 0, records: records)
    commit.listing = listing(name, createdAt: createdAt)
    return commit
}

/// An event whose body tells its number.
func event(_ number: Int, committedAt: Int64 = 1_000) -> OutboxEvent {
    OutboxEvent(
        id: "evt-\(number)", type: "stream.live", committedAt: committedAt, body: [UInt8(number % 256)])
}

/// A commit on top of `basis` that enqueues events.
func commit(_ name: String, basis: UInt64, events: [OutboxEvent]) -> StreamCommit {
    var commit = StreamCommit(stream: stream(name), basis: basis, records: [[UInt8(basis % 256)]])
    if basis == 0 { commit.listing = listing(name) }
    commit.events = events
    return commit
}
