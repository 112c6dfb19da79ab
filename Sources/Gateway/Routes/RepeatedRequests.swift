import Base
import HTTP
import Node
import Stage
import Synchronization

/// Answers to POSTs that came with an `Idempotency-Key`: a repetition is answered as the first time and makes nothing
/// more.
///
/// Kept in memory, because nothing is lost with them: sessions do not outlive a restart, a second token or link does no
/// harm, and there is one open poll at a time. A second stream would: `POST /v1/streams` keeps its answers in the
/// store.
/// - Source: draft-ietf-httpapi-idempotency-key-header-07.
final class RepeatedRequests: Sendable {
    private let shelf = Mutex(AnswerShelf())

    /// Answers a request, unless it was answered before.
    /// - Parameters:
    ///   - digest: of all that makes it another request.
    ///   - now: in seconds since 1970.
    func answerOnce(
        _ key: AnswerShelf.Key, digest: [UInt8], at now: Int, _ answer: () async throws -> HTTPResponse
    ) async throws -> HTTPResponse {
        let number: UInt64
        switch shelf.withLock({ $0.begin(key, digest: digest, at: now) }) {
        case .first(let first): number = first
        case .underWay: throw StageRefusal.busy
        case .other: throw StageRefusal.keyReused
        case .answered(let response): return response
        }
        do {
            let response = try await answer()
            shelf.withLock { $0.end(key, number, with: response) }
            return response
        } catch {
            shelf.withLock { $0.end(key, number, with: nil) }
            throw error
        }
    }
}

/// What is remembered of requests with a key; bounded for each who asks, and in all.
struct AnswerShelf {
    /// Who asks: two clients may choose the same key.
    enum Owner: Hashable, Sendable {
        /// Somebody with a token, by what the token makes them; of all streams for nil.
        case participant(ParticipantID, Role, of: StreamID?)
        /// Somebody without one.
        case address(IPAddress)
    }

    struct Key: Hashable, Sendable {
        let owner: Owner
        /// The client's own.
        let text: String
    }

    enum Finding: Equatable {
        /// Nobody asked so before: it is under way from now on, until `end` with this number.
        case first(UInt64)
        case underWay
        /// The key came with another request.
        case other
        case answered(HTTPResponse)
    }

    private struct Entry {
        let digest: [UInt8]
        /// In seconds since 1970.
        let begunAt: Int
        /// Tells entries of one key apart.
        let number: UInt64
        /// Nil while it is under way.
        var answer: HTTPResponse?
    }

    /// In seconds: a day.
    static let lifetime = 86_400
    /// For one owner, whose oldest go first.
    static let ownerLimit = 64
    /// In all: the oldest go first.
    static let limit = 4_096
    /// Of an answer's body, in bytes; larger ones, which nothing that is made has, are not kept.
    static let longest = 64 * 1_024
    /// Of all bodies, in bytes: the oldest go first.
    static let byteLimit = 16 * 1_024 * 1_024

    private var entries: [Key: Entry] = [:]
    /// In the order in which they came; some may be gone.
    private var order: [(key: Key, number: UInt64)] = []
    private var ordersOf: [Owner: [Key]] = [:]
    private var nextNumber: UInt64 = 1
    /// Of all bodies.
    private(set) var bytes = 0

    var count: Int { entries.count }

    /// - Parameter now: in seconds since 1970.
    mutating func begin(_ key: Key, digest: [UInt8], at now: Int) -> Finding {
        if let entry = entries[key] {
            if entry.begunAt + Self.lifetime > now || entry.answer == nil {
                guard entry.digest == digest else { return .other }
                return entry.answer.map { .answered($0) } ?? .underWay
            }
            remove(key)
        }
        makeRoom(for: key.owner)
        entries[key] = Entry(digest: digest, begunAt: now, number: nextNumber)
        order.append((key, nextNumber))
        ordersOf[key.owner, default: []].append(key)
        defer { nextNumber += 1 }
        return .first(nextNumber)
    }

    /// - Parameter answer: nil where nothing was made, so that the next request with the key may try again.
    mutating func end(_ key: Key, _ number: UInt64, with answer: HTTPResponse?) {
        guard entries[key]?.number == number else { return }
        guard let answer, (200..<300).contains(answer.status), answer.file == nil,
            answer.body.count <= Self.longest
        else {
            remove(key)
            return
        }
        entries[key]?.answer = answer
        bytes += answer.body.count
        while bytes > Self.byteLimit, removeOldest() {}
    }

    private mutating func makeRoom(for owner: Owner) {
        if let own = ordersOf[owner], own.count >= Self.ownerLimit, let oldest = own.first { remove(oldest) }
        while entries.count >= Self.limit, removeOldest() {}
        guard order.count >= 2 * Self.limit else { return }
        order.removeAll { entries[$0.key]?.number != $0.number }
    }

    /// - Returns: false when there is none.
    private mutating func removeOldest() -> Bool {
        guard let oldest = order.first else { return false }
        order.removeFirst()
        if entries[oldest.key]?.number == oldest.number { remove(oldest.key) }
        return true
    }

    private mutating func remove(_ key: Key) {
        guard let entry = entries.removeValue(forKey: key) else { return }
        bytes -= entry.answer?.body.count ?? 0
        ordersOf[key.owner]?.removeAll { $0 == key }
        if ordersOf[key.owner]?.isEmpty == true { ordersOf[key.owner] = nil }
    }
}
