import Base

/// What the transcoder may say: more is no work of its own any longer, and costs the server.
package struct MessageLimits: Sendable {
    /// A second, without any job.
    package var messages = 2_000
    /// The same in bytes.
    package var bytes = 4 << 20
    /// A second more for each job.
    ///
    /// As much as two inputs may bring, which a recording has, because it says again what comes in.
    package var messagesPerJob = 10_000
    /// The same in bytes.
    package var bytesPerJob = 20 << 20
    /// What one input may bring in a second: more is dropped before it comes to the process.
    package var packetsPerInput = 5_000
    /// The same in bytes.
    package var bytesPerInput = 8 << 20
    /// Lines a second for the log; further ones are left out.
    package var lines = 20
    /// Bytes a second on standard error, where libraries complain.
    package var errorBytes = 256 << 10

    package init() {}
}

/// A rate with room for bursts: a bucket that holds what may be spent in some seconds.
struct Budget {
    private static let seconds = 3

    private var rate: Int
    private var rest: Int
    private var filledAt: MonotonicTime

    init(rate: Int, at now: MonotonicTime) {
        self.rate = rate
        rest = rate * Self.seconds
        filledAt = now
    }

    /// - Parameter rate: from now on.
    mutating func refill(rate: Int, at now: MonotonicTime) {
        // Room for what is new is there at once.
        if rate > self.rate { rest += (rate - self.rate) * Self.seconds }
        self.rate = rate
        // In steps that are worth it: what is rounded off is not lost.
        let milliseconds = now.nanoseconds(since: filledAt) / 1_000_000
        guard milliseconds >= 10 else { return }
        filledAt = now
        rest = min(rest + rate * Int(min(milliseconds, 60_000)) / 1_000, rate * Self.seconds)
    }

    /// - Returns: whether there was enough.
    mutating func spend(_ amount: Int) -> Bool {
        guard rest >= amount else { return false }
        rest -= amount
        return true
    }
}

/// Holds one life of the process to its limits.
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

    mutating func advance(to now: MonotonicTime, jobs: Int) {
        messages.refill(rate: limits.messages + limits.messagesPerJob * jobs, at: now)
        bytes.refill(rate: limits.bytes + limits.bytesPerJob * jobs, at: now)
        lines.refill(rate: limits.lines, at: now)
        errorBytes.refill(rate: limits.errorBytes, at: now)
    }

    /// - Returns: whether the process may say so much.
    mutating func takeDatagram(_ count: Int) -> Bool { bytes.spend(count) }
    mutating func takeMessage() -> Bool { messages.spend(1) }
    mutating func takeErrors(_ count: Int) -> Bool { errorBytes.spend(count) }
    /// - Returns: whether the line is to be logged.
    mutating func takeLine() -> Bool { lines.spend(1) }
}

/// Puts lines together out of what comes on standard error.
struct ErrorLines {
    private static let longest = 500
    private var rest: [UInt8] = []

    /// - Returns: the lines that are complete, the longest in pieces.
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

    /// What came since the last line.
    mutating func flush() -> [String] {
        defer { rest.removeAll(keepingCapacity: true) }
        return rest.isEmpty ? [] : [String(decoding: rest, as: UTF8.self)]
    }
}
