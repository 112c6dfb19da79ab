import Base
import HTTP
import Node
import Stage
import Synchronization

/// Remembers responses to POST requests with an `Idempotency-Key`, so that a repetition creates nothing new.
///
/// Memory suffices, because a restart makes repetitions harmless: sessions do not survive it, a second token or link
/// does no harm, and only one poll can be open. A second stream would do harm, so `POST /v1/streams` keeps its
/// responses in the store.
/// - Source: draft-ietf-httpapi-idempotency-key-header-07.
final class RepeatedRequests: Sendable {
    private let shelf = Mutex(AnswerShelf())

    /// Returns the remembered response, or calls `answer` and remembers its result.
    /// - Parameters:
    ///   - digest: of everything that distinguishes one request from another under the same key.
    ///   - now: in seconds since 1970.
    /// - Throws: `busy` while the first request is under way, `keyReused` for a different request, and what `answer`
    ///   throws; an error is not remembered.
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

/// The remembered requests with a key; limited per owner and in total.
struct AnswerShelf {
    /// The sender of a request, since two clients may choose the same key.
    enum Owner: Hashable, Sendable {
        /// The bearer of a token, by identity, role and scope; `of` is nil for a token for all streams.
        case participant(ParticipantID, Role, of: StreamID?)
        /// A client without a token, by address.
        case address(IPAddress)

        /// The owner as whom it is limited: the addresses of an IPv6 /64, of which one subscriber has all, count
        /// together.
        fileprivate var limited: Owner {
            guard case .address(let ip) = self, ip.ipv4 == nil else { return self }
            return .address(IPAddress(high: ip.high, low: 0))
        }
    }

    struct Key: Hashable, Sendable {
        let owner: Owner
        /// The key as sent by the client.
        let text: String
    }

    /// What is known of a request.
    enum Finding: Equatable {
        /// The key is new: the request is under way until `end` is called with this number.
        case first(UInt64)
        /// The first request with the key has not been answered yet.
        case underWay
        /// The key was used with a different request.
        case other
        case answered(HTTPResponse)
    }

    private struct Entry {
        let digest: [UInt8]
        /// In seconds since 1970.
        let begunAt: Int
        /// Distinguishes successive entries of one key.
        let number: UInt64
        /// Nil while the request is under way.
        var answer: HTTPResponse?
    }

    /// How long a response is remembered, in seconds: a day.
    static let lifetime = 86_400
    /// Entries of one owner, or of all addresses of an IPv6 /64; the oldest is removed first.
    static let ownerLimit = 64
    /// Entries in total; the oldest is removed first.
    static let limit = 4_096
    /// Limit of a body, in bytes; larger ones are not kept, but no response to a POST is that large.
    static let longest = 64 * 1_024
    /// Limit of all bodies, in bytes; the oldest is removed first.
    static let byteLimit = 16 * 1_024 * 1_024

    private var entries: [Key: Entry] = [:]
    /// Entries by age; may contain removed ones, which `number` reveals.
    private var order: [(key: Key, number: UInt64)] = []
    /// Keys by age, of each owner as whom they are limited.
    private var ordersOf: [Owner: [Key]] = [:]
    private var nextNumber: UInt64 = 1
    /// Bytes of all remembered bodies.
    private(set) var bytes = 0

    var count: Int { entries.count }

    /// Looks up a key, and takes it for this request if it is new or has expired.
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
        ordersOf[key.owner.limited, default: []].append(key)
        defer { nextNumber += 1 }
        return .first(nextNumber)
    }

    /// Notes the response to a request that was `first`; only a small 2xx is remembered.
    /// - Parameter answer: nil if nothing was created, so that the next request with the key is processed again.
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

    /// Removes entries until there is room for one more of this owner and in total.
    private mutating func makeRoom(for owner: Owner) {
        if let own = ordersOf[owner.limited], own.count >= Self.ownerLimit, let oldest = own.first {
            remove(oldest)
        }
        while entries.count >= Self.limit, removeOldest() {}
        // Compacts the list rarely, so that the cost per request is constant on average.
        guard order.count >= 2 * Self.limit else { return }
        order.removeAll { entries[$0.key]?.number != $0.number }
    }

    /// Removes the oldest entry.
    /// - Returns: false if there is none.
    private mutating func removeOldest() -> Bool {
        guard let oldest = order.first else { return false }
        order.removeFirst()
        if entries[oldest.key]?.number == oldest.number { remove(oldest.key) }
        return true
    }

    /// Removes an entry from all tables except `order`.
    private mutating func remove(_ key: Key) {
        guard let entry = entries.removeValue(forKey: key) else { return }
        bytes -= entry.answer?.body.count ?? 0
        let owner = key.owner.limited
        ordersOf[owner]?.removeAll { $0 == key }
        if ordersOf[owner]?.isEmpty == true { ordersOf[owner] = nil }
    }
}
