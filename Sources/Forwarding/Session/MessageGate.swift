import Base

/// Limits a client's messages: a number and a size per second, with a reserve for bursts.
struct MessageGate {
    struct Limits {
        /// Per second; after a pause, `burst` seconds' worth may come at once.
        var messages: Double
        var bytes: Double
        var burst: Double

        /// For the control channel: more than a person's clicks need.
        static let control = Limits(messages: 20, bytes: 65_536, burst: 2)
        /// For data tracks of the stage, which are forwarded to all others on it.
        static let data = Limits(messages: 60, bytes: 262_144, burst: 2)
        /// For one viewer's messages on data tracks.
        static let viewerData = Limits(messages: 5, bytes: 4_096, burst: 2)
        /// For the data-track messages of a stream's whole audience on one worker.
        static let audience = Limits(messages: 100, bytes: 65_536, burst: 1)
    }

    private let limits: Limits
    private var messages: Double
    private var bytes: Double
    private var last: MonotonicTime

    init(_ limits: Limits, at now: MonotonicTime) {
        self.limits = limits
        messages = limits.messages * limits.burst
        bytes = limits.bytes * limits.burst
        last = now
    }

    /// Whether a message may pass; if so, it is counted.
    /// - Parameter size: in bytes.
    mutating func admit(bytes size: Int, at now: MonotonicTime) -> Bool {
        let elapsed = Double(max(now.nanoseconds(since: last), 0)) / 1e9
        last = now
        messages = min(messages + elapsed * limits.messages, limits.messages * limits.burst)
        bytes = min(bytes + elapsed * limits.bytes, limits.bytes * limits.burst)
        guard messages >= 1, bytes >= Double(size) else { return false }
        messages -= 1
        bytes -= Double(size)
        return true
    }
}
