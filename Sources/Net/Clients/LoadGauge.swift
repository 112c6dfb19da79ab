import Base

/// Tells whether so much comes to a client thread that it had better look at its sockets than be called.
struct LoadGauge {
    struct Limits {
        /// Datagrams a second from which on a thread is under load.
        var rate: Int64 = 20_000
        /// How long the rate is measured for, in nanoseconds.
        var window: Int64 = 50_000_000
        /// How long a thread stays under load after the last window that was, in nanoseconds.
        ///
        /// Frames come in bursts, with windows between in which nothing comes, and each change costs a system call for
        /// each socket.
        var patience: Int64 = 1_000_000_000
    }

    private let limits: Limits
    private var windowStart: MonotonicTime
    private var windowDatagrams: UInt64 = 0
    private var lastLoad: MonotonicTime?

    private(set) var isUnderLoad = false

    init(_ limits: Limits = Limits(), at now: MonotonicTime) {
        self.limits = limits
        windowStart = now
    }

    /// - Parameter datagrams: how many have come since the beginning.
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
