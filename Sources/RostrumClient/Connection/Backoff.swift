/// The pauses between attempts to reconnect.
///
/// Each is twice as long as the one before, randomized by a quarter, so that clients that lost their connections
/// together do not return together.
struct Backoff: Equatable, Sendable {
    static let first = Duration.milliseconds(500)
    static let longest = Duration.seconds(10)

    private var pause = Self.first

    /// The pause before the next attempt.
    /// - Parameter least: what the server asks for.
    mutating func next(
        atLeast least: Duration = .zero, using random: inout some RandomNumberGenerator
    ) -> Duration {
        defer { pause = min(pause * 2, Self.longest) }
        return max(pause * Double.random(in: 0.75...1.25, using: &random), least)
    }

    /// Starts over after a successful attempt.
    mutating func reset() {
        pause = Self.first
    }
}
