import Base

/// Decides which comments are delivered to all followers, and when: per second no more than people can read.
///
/// Beyond that rate a fair sample is delivered, with the number of comments that were left out. Each comment since
/// the last message has the same chance. Comments of hosts are never left out. A comment that the next message has no
/// room for is delivered with the one after it only if fewer comments come by then.
package struct CommentDelivery: Equatable, Sendable {
    /// One message to all followers.
    package struct Message: Equatable, Sendable {
        /// In the order in which they were written.
        package let comments: [StreamComment]
        /// Number of comments left out since the last message.
        package let more: Int
    }

    /// Most comments delivered to a follower in any one second, without those of hosts: `burst` and a second's rate.
    package static let limit = 50
    private static let rate = Rate(burst: 10, perSecond: 40)
    /// Comments kept of those since the last message, and of those before: a quarter of a second's.
    private static let waitLimit = 10
    /// Comments of hosts that may wait; hosts are few, and each has a rate limit.
    private static let hostsWaitLimit = 50

    /// What is left of the rate, over all comments that do not come from hosts.
    private var allowance: Allowance
    /// Comments that the last message had no room for, in the order in which they were written.
    private var left: [StreamComment] = []
    /// A sample of the comments since the last message, in the same order.
    private var fresh: [StreamComment] = []
    /// Comments that are delivered in any case.
    private var ofHosts: [StreamComment] = []
    /// Comments since the last message, kept or not.
    private var seen = 0
    /// Comments left out since the last message.
    private var more = 0
    /// Nil before the first message.
    private var sentAt: MonotonicTime?
    /// Time between two messages; a node with many followers makes it longer.
    package var interval = Duration.milliseconds(100)

    /// No comments, and a full rate.
    package init(at now: MonotonicTime) {
        allowance = Allowance(Self.rate, at: now)
    }

    /// Adds a comment to the sample.
    ///
    /// - Parameter isOfHost: whether it is delivered in any case.
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
        // The sample is full, so a comment is left out for good: this one, or one whose place it takes (reservoir
        // sampling).
        more += 1
        let place = Int(Self.mixed(comment.number) % UInt64(seen))
        guard fresh.indices.contains(place) else { return }
        fresh.remove(at: place)
        fresh.append(comment)
    }

    /// Removes a comment that was deleted before it was delivered.
    package mutating func remove(_ number: Int) {
        left.removeAll { $0.number == number }
        fresh.removeAll { $0.number == number }
        ofHosts.removeAll { $0.number == number }
    }

    /// When the next message is due; nil if there is nothing to deliver.
    package var deadline: MonotonicTime? {
        guard !left.isEmpty || !fresh.isEmpty || !ofHosts.isEmpty || more > 0 else { return nil }
        return sentAt.map { $0 + interval } ?? .zero
    }

    /// Takes the message to deliver now; nil if none is due or it would be empty.
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

    /// Takes up to `count` waiting comments, the older ones first.
    ///
    /// If more have come since the last message than that, it takes a sample of these, and drops the older ones,
    /// which had their chance.
    private mutating func takeWaiting(_ count: Int) -> [StreamComment] {
        guard fresh.count > count, count > 0 else {
            let all = left + fresh
            fresh = []
            left = Array(all.dropFirst(count).suffix(Self.waitLimit))
            more += all.count - count - left.count
            return Array(all.prefix(count))
        }
        more += left.count
        // The hash must differ from the one in `append`: for comments that passed that sample, its value is not
        // random any more.
        let lucky = Set(
            fresh.map(\.number).sorted { Self.mixed(~$0) < Self.mixed(~$1) }.prefix(count))
        left = fresh.filter { !lucky.contains($0.number) }
        defer { fresh = [] }
        return fresh.filter { lucky.contains($0.number) }
    }

    /// Hashes a number: it looks random, but is the same whenever it is computed for the same comment.
    /// - Source: Steele, Lea, Flood: Fast splittable pseudorandom number generators (2014), figure 16.
    private static func mixed(_ number: Int) -> UInt64 {
        var z = UInt64(truncatingIfNeeded: number) &* 0x9E37_79B9_7F4A_7C15
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }
}
