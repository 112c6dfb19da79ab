import Base

/// Decides whether a client thread receives so much that polling its sockets costs less than watching them.
struct LoadGauge {
    struct Limits {
        /// Datagrams per second from which the thread counts as under load.
        var rate: Int64 = 20_000
        /// Length of one measurement of the rate, in nanoseconds.
        var window: Int64 = 50_000_000
        /// How long the thread counts as under load after the last measurement that was, in nanoseconds.
        ///
        /// Frames come in bursts with quiet windows between them, and each change costs a system call per socket.
        var patience: Int64 = 1_000_000_000
    }

    private let limits: Limits
    private var windowStart: MonotonicTime
    /// The datagram count when the window began.
    private var windowDatagrams: UInt64 = 0
    /// The end of the latest window that exceeded the rate; nil if none did.
    private var lastLoad: MonotonicTime?

    private(set) var isUnderLoad = false

    init(_ limits: Limits = Limits(), at now: MonotonicTime) {
        self.limits = limits
        windowStart = now
    }

    /// Updates the state; does nothing until the current window is over.
    /// - Parameter datagrams: datagrams received since the beginning, not in this window only.
    mutating func note(datagrams: UInt64, at now: MonotonicTime) {
        let elapsed = now.nanoseconds(since: windowStart)
        guard elapsed >= limits.window else { return }
        let count = Int64(clamping: datagrams &- windowDatagrams)
        if count > elapsed / 1_000_000 * limits.rate / 1_000 { lastLoad = now }
        isUnderLoad = lastLoad.map { now.nanoseconds(since: $0) < limits.patience } ?? false
        windowStart = now
        windowDatagrams = datagrams
    }
}
