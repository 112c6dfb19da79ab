import Base
import Store

/// Commits to one stream that are the same for the same seed: what was written can be told from what was not.
package struct CommitPlan: Sendable {
    package let stream: StreamID
    private var random: SplitMix64
    private var version: UInt64 = 0
    private var number = 0
    private var entries = 0
    private var listing: StreamListing

    /// - Parameter index: names the stream.
    package init?(seed: UInt64, index: Int) {
        guard let stream = StreamID("stream-\(index)") else { return nil }
        self.stream = stream
        random = SplitMix64(state: seed &* 1_000 &+ UInt64(index))
        listing = StreamListing(
            stream: stream, state: "backstage", host: "host-\(index)", createdAt: Int64(index))
    }

    /// The next commit, on top of those before.
    package mutating func next() -> StreamCommit {
        let count = number == 0 ? 1 + random.next() % 3 : random.next() % 4
        var commit = StreamCommit(
            stream: stream, basis: version, records: (0..<count).map { _ in bytes(upTo: 2_000) })
        if number == 0 || random.next() % 4 == 0 {
            listing.state = ["backstage", "live", "paused"][Int(random.next() % 3)]
            listing.title = "Title \(random.next() % 100)"
            commit.listing = listing
        }
        if commit.records.isEmpty || random.next() % 8 == 0 {
            // With the number, so that no two commits leave the stream the same.
            commit.snapshot = Array("\(number)".utf8) + bytes(upTo: 20_000)
        }
        for _ in 0..<random.next() % 3 {
            commit.events.append(
                OutboxEvent(
                    id: "\(stream)-\(random.next())", type: "trial", committedAt: Int64(number),
                    body: bytes(upTo: 500)))
        }
        if random.next() % 3 == 0 {
            commit.answer = (
                IdempotencyKey(scope: "\(stream)", key: "\(number)"),
                IdempotentAnswer(request: bytes(upTo: 32), answer: bytes(upTo: 300), expiresAt: .max)
            )
        }
        for _ in 0..<random.next() % 3 {
            entries += 1
            commit.ledger.append(LedgerEntry(number: entries, key: "key-\(entries)", bytes: bytes(upTo: 300)))
        }
        version = commit.version
        number += 1
        return commit
    }

    private mutating func bytes(upTo count: UInt64) -> [UInt8] {
        let length = random.next() % count
        return [UInt8](repeating: UInt8(truncatingIfNeeded: random.next()), count: Int(length))
    }
}

/// Random numbers that are the same for the same seed.
private struct SplitMix64: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
