import Base

/// How much a client may say: so many messages and bytes a second, with some in hand.
///
/// - Source: the token bucket, with two kinds of tokens.
struct MessageGate {
    struct Limits {
        /// A second; as many may come at once after a pause of `burst` seconds.
        var messages: Double
        var bytes: Double
        var burst: Double

        /// For the control channel: a person presses no more buttons.
        static let control = Limits(messages: 20, bytes: 65_536, burst: 2)
        /// For what is passed on to everybody else on the stage.
        static let data = Limits(messages: 60, bytes: 262_144, burst: 2)
        /// For what one of the audience says on data tracks.
        static let viewerData = Limits(messages: 5, bytes: 4_096, burst: 2)
        /// For what a stream's whole audience says on them, on one worker.
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

    /// Whether a message may pass; it is counted if so.
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
