import Base
import Glibc

/// The program that started this one and wants its state: systemd, or any other that sets the same variables.
/// - Source: sd_notify(3), sd_watchdog_enabled(3).
struct ServiceManager: Sendable {
    /// The states that are reported.
    enum State: Equatable, Sendable {
        /// Serving, with a status line for `systemctl status`.
        case ready(String)
        /// Reading the configuration again; `ready` follows.
        case reloading
        /// Shutting down; no further state follows.
        case stopping
        /// Nothing in the process is stuck.
        case alive
    }

    /// A path, or `@` and a name in Linux's abstract namespace; nil if no state is wanted.
    private let socket: String?
    /// The service manager ends the process after this time without a sign; nil for never.
    let watchdogTimeout: Duration?

    /// Reads `NOTIFY_SOCKET`, `WATCHDOG_PID` and `WATCHDOG_USEC`.
    /// - Parameter process: this process's ID; the variables may have been inherited from a parent that they were for.
    init(environment: [String: String], process: Int32 = getpid()) {
        socket = environment["NOTIFY_SOCKET"].flatMap { $0.hasPrefix("/") || $0.hasPrefix("@") ? $0 : nil }
        let isMeant = environment["WATCHDOG_PID"].map { $0 == "\(process)" } ?? true
        watchdogTimeout = environment["WATCHDOG_USEC"].flatMap(Int64.init)
            .flatMap { isMeant && $0 > 0 ? .microseconds($0) : nil }
    }

    /// Reports a state; does nothing if no service manager listens, and ignores errors.
    func notify(_ state: State) {
        guard let socket else { return }
        let text =
            switch state {
            case .ready(let status): "READY=1\nSTATUS=\(status)"
            // Units of Type=notify-reload require the time; others ignore it.
            case .reloading: "RELOADING=1\nMONOTONIC_USEC=\(Self.monotonicMicroseconds)"
            case .stopping: "STOPPING=1"
            case .alive: "WATCHDOG=1"
            }
        Self.send(Array(text.utf8), to: socket)
    }

    /// The time by CLOCK_MONOTONIC, which systemd compares with its own.
    private static var monotonicMicroseconds: Int {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return time.tv_sec * 1_000_000 + time.tv_nsec / 1_000
    }

    /// Sends one datagram.
    private static func send(_ bytes: [UInt8], to name: String) {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        // In the abstract namespace the name begins with a zero byte, where the variable has `@`.
        let path = name.hasPrefix("@") ? [0] + Array(name.utf8.dropFirst()) : Array(name.utf8)
        let start = MemoryLayout<sockaddr_un>.offset(of: \.sun_path) ?? 2
        guard path.count < MemoryLayout<sockaddr_un>.size - start else { return }
        withUnsafeMutableBytes(of: &address) { $0[start...].copyBytes(from: path) }
        // The exact length: in the abstract namespace trailing zeros would be part of the name.
        let length = socklen_t(start + path.count)
        let descriptor = Glibc.socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return }
        defer { close(descriptor) }
        _ = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                sendto(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL), $0, length)
            }
        }
    }
}
