import Base

/// Which comments all others hear of, and when: no more in a second than people can read.
///
/// Beyond it a fair sample is told, and how many more there were: each comment that came since the last message has the
/// same chance. What hosts write is never left out. Nobody waits: what is not told soon is not told.
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
    /// That wait for their turn: a quarter of a second's.
    private static let waitLimit = 10
    /// Of hosts; they are few, and each has a limit of their own.
    private static let hostsWaitLimit = 50

    private var allowance: Allowance
    /// In the order in which they came.
    private var waiting: [StreamComment] = []
    private var ofHosts: [StreamComment] = []
    /// Since the last message, those included that waited then.
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
        guard waiting.count >= Self.waitLimit else {
            waiting.append(comment)
            return
        }
        // One that is left out for good, be it this one.
        more += 1
        let place = Int(Self.mixed(UInt64(comment.number)) % UInt64(seen))
        guard waiting.indices.contains(place) else { return }
        waiting.remove(at: place)
        waiting.append(comment)
    }

    /// One that was deleted need not be told.
    package mutating func remove(_ number: Int) {
        waiting.removeAll { $0.number == number }
        ofHosts.removeAll { $0.number == number }
    }

    /// When the next message is due; nil while there is nothing to tell.
    package var deadline: MonotonicTime? {
        guard !waiting.isEmpty || !ofHosts.isEmpty || more > 0 else { return nil }
        return sentAt.map { $0 + interval } ?? .zero
    }

    /// What to tell everybody now; nil for nothing.
    package mutating func take(at now: MonotonicTime) -> Message? {
        guard let deadline, deadline <= now else { return nil }
        let count = allowance.take(waiting.count, of: Self.rate, at: now)
        let comments = (waiting.prefix(count) + ofHosts).sorted { $0.number < $1.number }
        waiting.removeFirst(count)
        ofHosts = []
        seen = waiting.count
        defer { more = 0 }
        sentAt = now
        return comments.isEmpty && more == 0 ? nil : Message(comments: comments, more: more)
    }

    /// A number that looks like chance, and is the same for the same comment.
    /// - Source: Steele, Lea, Flood: Fast splittable pseudorandom number generators (2014), figure 16.
    private static func mixed(_ number: UInt64) -> UInt64 {
        var z = number &* 0x9E37_79B9_7F4A_7C15
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }
}
