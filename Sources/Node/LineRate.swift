import Base

/// How many log lines of one kind may be written: strangers decide how often some things happen.
struct LineRate {
    /// A second, and at once.
    static let limit = 200

    private var second: Int64 = .min
    private var count = 0
    private var omitted = 0

    /// Whether another may be written.
    mutating func admit(at now: MonotonicTime) -> Bool {
        let current = now.nanoseconds / 1_000_000_000
        if current != second {
            second = current
            count = 0
        }
        count += 1
        guard count > Self.limit else { return true }
        omitted += 1
        return false
    }

    /// How many were left out since the last call.
    mutating func takeOmitted() -> Int {
        defer { omitted = 0 }
        return omitted
    }
}
