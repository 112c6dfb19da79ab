import Base

/// The limits on the transcoder's output and input, within which a compromised process cannot burden the server.
package struct MessageLimits: Sendable {
    /// Messages per second without any job.
    package var messages = 2_000
    /// Bytes per second without any job.
    package var bytes = 4 << 20
    /// Additional messages per second for each job.
    ///
    /// As many as two inputs may deliver, because a recording reports everything that it receives.
    package var messagesPerJob = 10_000
    /// Additional bytes per second for each job.
    package var bytesPerJob = 20 << 20
    /// Packets per second of one input; further ones are dropped before they reach the process.
    package var packetsPerInput = 5_000
    /// Bytes per second of one input.
    package var bytesPerInput = 8 << 20
    /// Log lines per second; further ones are dropped.
    package var lines = 20
    /// Bytes per second on standard error, to which libraries write messages.
    package var errorBytes = 256 << 10

    package init() {}
}

/// A token bucket: a rate that permits bursts of some seconds.
struct Budget {
    /// Seconds of the rate that the bucket holds.
    private static let seconds = 3

    /// Tokens per second.
    private var rate: Int
    /// Tokens left.
    private var rest: Int
    private var filledAt: MonotonicTime

    init(rate: Int, at now: MonotonicTime) {
        self.rate = rate
        rest = rate * Self.seconds
        filledAt = now
    }

    /// Adds the tokens of the time since the last refill.
    /// - Parameter rate: per second from now on.
    mutating func refill(rate: Int, at now: MonotonicTime) {
        // A higher rate permits larger bursts immediately.
        if rate > self.rate { rest += (rate - self.rate) * Self.seconds }
        self.rate = rate
        let microseconds = Int(now.nanoseconds(since: filledAt) / 1_000)
        guard microseconds < Self.seconds * 1_000_000 else {
            (rest, filledAt) = (rate * Self.seconds, now)
            return
        }
        // Time that is not worth a token yet accumulates: of a low rate, rounding would lose all of it.
        let gained = rate * microseconds / 1_000_000
        guard gained > 0 else { return }
        filledAt = filledAt + .microseconds((gained * 1_000_000 + rate - 1) / rate)
        rest = min(rest + gained, rate * Self.seconds)
    }

    /// Takes tokens.
    /// - Returns: false if too few are left; none are taken then.
    mutating func spend(_ amount: Int) -> Bool {
        guard rest >= amount else { return false }
        rest -= amount
        return true
    }
}

/// Enforces the limits on one life of the process.
struct MessageBudget {
    private let limits: MessageLimits
    private var messages: Budget
    private var bytes: Budget
    private var lines: Budget
    private var errorBytes: Budget

    init(_ limits: MessageLimits, at now: MonotonicTime) {
        self.limits = limits
        messages = Budget(rate: limits.messages, at: now)
        bytes = Budget(rate: limits.bytes, at: now)
        lines = Budget(rate: limits.lines, at: now)
        errorBytes = Budget(rate: limits.errorBytes, at: now)
    }

    /// Refills the buckets.
    /// - Parameter jobs: jobs in progress.
    mutating func advance(to now: MonotonicTime, jobs: Int) {
        messages.refill(rate: limits.messages + limits.messagesPerJob * jobs, at: now)
        bytes.refill(rate: limits.bytes + limits.bytesPerJob * jobs, at: now)
        lines.refill(rate: limits.lines, at: now)
        errorBytes.refill(rate: limits.errorBytes, at: now)
    }

    /// Each returns false if the limit is exceeded, which ends the process.
    mutating func takeDatagram(_ count: Int) -> Bool { bytes.spend(count) }
    mutating func takeMessage() -> Bool { messages.spend(1) }
    mutating func takeErrors(_ count: Int) -> Bool { errorBytes.spend(count) }
    /// Whether the line is logged; others are dropped without further consequences.
    mutating func takeLine() -> Bool { lines.spend(1) }
}

/// Splits standard error into lines.
struct ErrorLines {
    /// Longest line, in bytes.
    private static let longest = 500
    /// The incomplete line.
    private var rest: [UInt8] = []

    /// Appends bytes.
    /// - Returns: complete lines; those that are too long are split.
    mutating func receive(_ bytes: some Sequence<UInt8>) -> [String] {
        var lines: [String] = []
        for byte in bytes {
            if byte == UInt8(ascii: "\n") || rest.count == Self.longest {
                lines += flush()
            }
            if byte != UInt8(ascii: "\n") { rest.append(byte) }
        }
        return lines
    }

    /// Removes and returns the incomplete line, if any.
    mutating func flush() -> [String] {
        defer { rest.removeAll(keepingCapacity: true) }
        return rest.isEmpty ? [] : [String(decoding: rest, as: UTF8.self)]
    }
}
