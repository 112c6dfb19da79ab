import Base

/// Which comments all others hear of, and when: no more in a second than people can read.
///
/// Beyond it a fair sample is told, and how many more there were: each comment that came since the last message has the
/// same chance. What hosts write is never left out. Nobody waits: what the next message has no room for is told with
/// the one after it only if fewer come then.
package struct CommentDelivery: Equatable, Sendable {
    /// What is told at once.
    package struct Message: Equatable, Sendable {
        /// In the order in which they came.
        package let comments: [StreamComment]
        /// That are left out, since the last message.
        package let more: Int
    }

    /// To each follower in any one second, those of hosts beside: `burst` and what comes a second.
    package static let limit = 50
    private static let rate = Rate(burst: 10, perSecond: 40)
    /// Of those that came since the last message, and of those before: a quarter of a second's.
    private static let waitLimit = 10
    /// Of hosts; they are few, and each has a limit of their own.
    private static let hostsWaitLimit = 50

    private var allowance: Allowance
    /// Those for which the last message had no room, in the order in which they came.
    private var left: [StreamComment] = []
    /// A sample of those since the last message, in that order.
    private var fresh: [StreamComment] = []
    private var ofHosts: [StreamComment] = []
    /// Since the last message.
    private var seen = 0
    private var more = 0
    private var sentAt: MonotonicTime?
    /// Between two messages; those who tell many followers want it longer.
    package var interval = Duration.milliseconds(100)

    package init(at now: MonotonicTime) {
        allowance = Allowance(Self.rate, at: now)
    }

    /// - Parameter isOfHost: whether it is told whatever else there is.
    package mutating func append(_ comment: StreamComment, isOfHost: Bool) {
        if isOfHost, ofHosts.count < Self.hostsWaitLimit {
            ofHosts.append(comment)
            return
        }
        seen += 1
        guard fresh.count >= Self.waitLimit else {
            fresh.append(comment)
            return
        }
        // One that is left out for good, be it this one.
        more += 1
        let place = Int(Self.mixed(comment.number) % UInt64(seen))
        guard fresh.indices.contains(place) else { return }
        fresh.remove(at: place)
        fresh.append(comment)
    }

    /// One that was deleted need not be told.
    package mutating func remove(_ number: Int) {
        left.removeAll { $0.number == number }
        fresh.removeAll { $0.number == number }
        ofHosts.removeAll { $0.number == number }
    }

    /// When the next message is due; nil while there is nothing to tell.
    package var deadline: MonotonicTime? {
        guard !left.isEmpty || !fresh.isEmpty || !ofHosts.isEmpty || more > 0 else { return nil }
        return sentAt.map { $0 + interval } ?? .zero
    }

    /// What to tell everybody now; nil for nothing.
    package mutating func take(at now: MonotonicTime) -> Message? {
        guard let deadline, deadline <= now else { return nil }
        let count = allowance.take(left.count + fresh.count, of: Self.rate, at: now)
        let comments = (takeWaiting(count) + ofHosts).sorted { $0.number < $1.number }
        ofHosts = []
        seen = 0
        defer { more = 0 }
        sentAt = now
        return comments.isEmpty && more == 0 ? nil : Message(comments: comments, more: more)
    }

    /// So many of those that wait: in their order, unless more have come than that; then some of these, and none of
    /// those that had their chance.
    private mutating func takeWaiting(_ count: Int) -> [StreamComment] {
        guard fresh.count > count, count > 0 else {
            let all = left + fresh
            fresh = []
            left = Array(all.dropFirst(count).suffix(Self.waitLimit))
            more += all.count - count - left.count
            return Array(all.prefix(count))
        }
        more += left.count
        // Not by the number that `append` went by: of those that it took, that number is no chance any more.
        let lucky = Set(
            fresh.map(\.number).sorted { Self.mixed(~$0) < Self.mixed(~$1) }.prefix(count))
        left = fresh.filter { !lucky.contains($0.number) }
        defer { fresh = [] }
        return fresh.filter { lucky.contains($0.number) }
    }

    /// A number that looks like chance, and is the same for the same comment.
    /// - Source: Steele, Lea, Flood: Fast splittable pseudorandom number generators (2014), figure 16.
    private static func mixed(_ number: Int) -> UInt64 {
        var z = UInt64(truncatingIfNeeded: number) &* 0x9E37_79B9_7F4A_7C15
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }
}
