/// Pauses between attempts: each twice as long as the one before it, up to a longest one, and spread out, so that a
/// thousand clients do not come back in the same instant.
struct Backoff: Equatable, Sendable {
    /// In nanoseconds.
    let first: Int64
    let longest: Int64
    private var next: Int64
    /// A pause takes so much of its nominal length.
    private static let spread = 0.75..<1.25

    init(first: Duration, longest: Duration) {
        self.first = first.wholeNanoseconds
        self.longest = longest.wholeNanoseconds
        next = self.first
    }

    /// The next pause, in nanoseconds.
    /// - Parameter asked: what the server wants at least, in nanoseconds.
    mutating func pause(atLeast asked: Int64 = 0, using random: inout some RandomNumberGenerator) -> Int64 {
        let nominal = max(asked, next)
        next = min(next * 2, longest)
        return Int64(Double(nominal) * Double.random(in: Self.spread, using: &random))
    }

    mutating func reset() { next = first }
}

extension Duration {
    /// Of pauses, which are short.
    fileprivate var wholeNanoseconds: Int64 {
        components.seconds * 1_000_000_000 + components.attoseconds / 1_000_000_000
    }
}
