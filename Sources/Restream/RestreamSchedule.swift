import Base

/// When a target that failed is tried again: after a second, then after twice as long each time, up to a minute.
package struct RestreamSchedule: Equatable, Sendable {
    package static let shortest = Duration.seconds(1)
    package static let longest = Duration.seconds(60)
    /// What was taken for so long begins anew with the shortest time.
    package static let steadyTime = Duration.seconds(30)

    /// Failures since it last went well.
    package private(set) var failures = 0

    package init() {}

    /// Notes a failure.
    /// - Parameters:
    ///   - lived: how long the target took the programme before.
    ///   - random: spreads those that failed together, by up to a fifth.
    /// - Returns: how long to wait.
    package mutating func fail(
        after lived: Duration, using random: inout some RandomNumberGenerator
    ) -> Duration {
        failures = lived >= Self.steadyTime ? 1 : min(failures + 1, 32)
        let factor = 1 << min(failures - 1, 6)
        let wait = min(Self.shortest * factor, Self.longest)
        return wait + wait * Double.random(in: 0...0.2, using: &random)
    }
}
