/// How long to wait before the next try: twice as long each time, give or take a quarter, so that those who were cut
/// off together do not come back together.
struct Backoff: Equatable, Sendable {
    static let first = Duration.milliseconds(500)
    static let longest = Duration.seconds(10)

    private var pause = Self.first

    /// - Parameter atLeast: what the server asks for.
    mutating func next(
        atLeast least: Duration = .zero, using random: inout some RandomNumberGenerator
    ) -> Duration {
        defer { pause = min(pause * 2, Self.longest) }
        return max(pause * Double.random(in: 0.75...1.25, using: &random), least)
    }

    /// It worked.
    mutating func reset() {
        pause = Self.first
    }
}
