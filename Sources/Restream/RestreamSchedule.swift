import Base

/// The backoff after failures of a target: one second at first, doubled with each failure up to a minute.
package struct RestreamSchedule: Equatable, Sendable {
    /// Wait after the first failure, before the random addition.
    package static let shortest = Duration.seconds(1)
    /// Longest wait, before the random addition.
    package static let longest = Duration.seconds(60)
    /// A target that accepted the programme for this long starts again with the shortest wait.
    package static let steadyTime = Duration.seconds(30)

    /// Failures in a row; 0 before the first failure.
    package private(set) var failures = 0

    package init() {}

    /// Notes a failure, and decides how long to wait.
    /// - Parameters:
    ///   - lived: how long the target accepted the programme before it failed.
    ///   - random: adds up to a fifth, so that targets which failed together are not retried together.
    /// - Returns: how long to wait before the next attempt.
    package mutating func fail(
        after lived: Duration, using random: inout some RandomNumberGenerator
    ) -> Duration {
        failures = lived >= Self.steadyTime ? 1 : min(failures + 1, 32)
        let factor = 1 << min(failures - 1, 6)
        let wait = min(Self.shortest * factor, Self.longest)
        return wait + wait * Double.random(in: 0...0.2, using: &random)
    }
}
