/// Pauses between attempts, each twice as long as the previous one up to a limit.
///
/// Random factors spread them, so that a thousand clients do not return in the same instant.
struct Backoff: Equatable, Sendable {
    /// In nanoseconds; `longest` limits the doubling.
    let first: Int64
    let longest: Int64
    /// The nominal length of the next pause.
    private var next: Int64
    /// The random factor of a pause.
    private static let spread = 0.75..<1.25

    init(first: Duration, longest: Duration) {
        self.first = first.wholeNanoseconds
        self.longest = longest.wholeNanoseconds
        next = self.first
    }

    /// Returns the next pause in nanoseconds, and doubles the one after it.
    /// - Parameter asked: the least that the server wants, in nanoseconds.
    mutating func pause(atLeast asked: Int64 = 0, using random: inout some RandomNumberGenerator) -> Int64 {
        let nominal = max(asked, next)
        next = min(next * 2, longest)
        return Int64(Double(nominal) * Double.random(in: Self.spread, using: &random))
    }

    /// Makes the next pause short again.
    mutating func reset() { next = first }
}

extension Duration {
    /// Only for short durations, which do not overflow.
    fileprivate var wholeNanoseconds: Int64 {
        components.seconds * 1_000_000_000 + components.attoseconds / 1_000_000_000
    }
}
