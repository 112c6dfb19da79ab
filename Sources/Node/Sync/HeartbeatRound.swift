import Base

/// Spreads heartbeats over time, so that thousands of followers do not get them at the same moment.
///
/// Each follower keeps one of several turns in every interval. Followers who came one after the other share a turn:
/// with few followers there is nothing to spread, and one wake-up serves all of them.
struct HeartbeatRound {
    /// The time between two heartbeats of one follower.
    static let interval = Duration.seconds(5)
    /// Turns in an interval, each 250 ms long.
    static let turns = 20
    private static let turnLength = interval / turns
    /// Consecutive followers that share a turn.
    private static let group: UInt64 = 64

    private let start: MonotonicTime
    /// Turns since `start` that are over.
    private var passed: Int64 = 0
    /// The followers of each turn.
    private var followers = [Set<UInt64>](repeating: [], count: turns)

    init(at now: MonotonicTime) {
        start = now
    }

    /// - Parameter number: the follower's, given in the order of arrival.
    mutating func add(_ number: UInt64) { followers[Self.turn(of: number)].insert(number) }

    mutating func remove(_ number: UInt64) { followers[Self.turn(of: number)].remove(number) }

    mutating func removeAll() { for turn in followers.indices { followers[turn].removeAll() } }

    private static func turn(of number: UInt64) -> Int { Int(number / group % UInt64(turns)) }

    /// When the next turn with followers comes; nil without followers.
    var deadline: MonotonicTime? {
        for ahead in 1...Int64(Self.turns) where !followers[Self.index(passed + ahead)].isEmpty {
            return start + Self.turnLength * (passed + ahead)
        }
        return nil
    }

    /// Returns the followers whose turn has come since the last call, each once.
    mutating func due(at now: MonotonicTime) -> [UInt64] {
        let reached = now.nanoseconds(since: start) / Self.turnLength.wholeNanoseconds
        guard reached > passed else { return [] }
        // After a long pause each turn counts once.
        let first = max(passed, reached - Int64(Self.turns))
        passed = reached
        return (first..<reached).flatMap { followers[Self.index($0 + 1)] }
    }

    private static func index(_ turn: Int64) -> Int { Int(turn % Int64(turns)) }
}
