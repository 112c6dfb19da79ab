import Base

/// Whose turn it is to hear a heartbeat, so that thousands who follow something do not all hear it at once.
///
/// Each follower has one of several turns in every interval, which stays theirs. Those who came together share one: for
/// few followers there is nothing to spread.
struct HeartbeatRound {
    /// Between two heartbeats of one follower.
    static let interval = Duration.seconds(5)
    static let turns = 20
    private static let turnLength = interval / turns
    /// As many in a row share a turn.
    private static let group: UInt64 = 64

    private let start: MonotonicTime
    /// Turns since `start` that are over.
    private var passed: Int64 = 0
    /// By turn.
    private var followers = [Set<UInt64>](repeating: [], count: turns)

    init(at now: MonotonicTime) {
        start = now
    }

    /// - Parameter number: given in the order in which they come.
    mutating func add(_ number: UInt64) { followers[Self.turn(of: number)].insert(number) }

    mutating func remove(_ number: UInt64) { followers[Self.turn(of: number)].remove(number) }

    mutating func removeAll() { for turn in followers.indices { followers[turn].removeAll() } }

    private static func turn(of number: UInt64) -> Int { Int(number / group % UInt64(turns)) }

    /// When the next turn comes that is somebody's; nil if nobody is there.
    var deadline: MonotonicTime? {
        for ahead in 1...Int64(Self.turns) where !followers[Self.index(passed + ahead)].isEmpty {
            return start + Self.turnLength * (passed + ahead)
        }
        return nil
    }

    /// - Returns: those whose turn has come since this was asked the last time, each once.
    mutating func due(at now: MonotonicTime) -> [UInt64] {
        let reached = now.nanoseconds(since: start) / Self.turnLength.wholeNanoseconds
        guard reached > passed else { return [] }
        let first = max(passed, reached - Int64(Self.turns))
        passed = reached
        return (first..<reached).flatMap { followers[Self.index($0 + 1)] }
    }

    private static func index(_ turn: Int64) -> Int { Int(turn % Int64(turns)) }
}
