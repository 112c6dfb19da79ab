import Base
import Glibc

/// What started the program and wants to hear how it does: systemd, or whatever sets the same variables.
/// - Source: sd_notify(3), sd_watchdog_enabled(3).
struct ServiceManager: Sendable {
    /// What it is told.
    enum State: Equatable, Sendable {
        case ready(String)
        case reloading
        case stopping
        /// That the program has not hung itself up.
        case alive
    }

    /// A path, or @ and a name that is in no directory.
    private let socket: String?
    /// After how long a silence it ends the program; nil for never.
    let watchdogTimeout: Duration?

    /// - Parameter process: this one's id; a watchdog may be meant for another.
    init(environment: [String: String], process: Int32 = getpid()) {
        socket = environment["NOTIFY_SOCKET"].flatMap { $0.hasPrefix("/") || $0.hasPrefix("@") ? $0 : nil }
        let isMeant = environment["WATCHDOG_PID"].map { $0 == "\(process)" } ?? true
        watchdogTimeout = environment["WATCHDOG_USEC"].flatMap(Int64.init)
            .flatMap { isMeant && $0 > 0 ? .microseconds($0) : nil }
    }

    /// Nobody may be there to hear it, which changes nothing.
    func notify(_ state: State) {
        guard let socket else { return }
        let text =
            switch state {
            case .ready(let status): "READY=1\nSTATUS=\(status)"
            case .reloading: "RELOADING=1\nMONOTONIC_USEC=\(Self.monotonicMicroseconds)"
            case .stopping: "STOPPING=1"
            case .alive: "WATCHDOG=1"
            }
        Self.send(Array(text.utf8), to: socket)
    }

    private static var monotonicMicroseconds: Int {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return time.tv_sec * 1_000_000 + time.tv_nsec / 1_000
    }

    private static func send(_ bytes: [UInt8], to name: String) {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        // A zero stands for the @ of a name that is in no directory.
        let path = name.hasPrefix("@") ? [0] + Array(name.utf8.dropFirst()) : Array(name.utf8)
        let start = MemoryLayout<sockaddr_un>.offset(of: \.sun_path) ?? 2
        guard path.count < MemoryLayout<sockaddr_un>.size - start else { return }
        withUnsafeMutableBytes(of: &address) { $0[start...].copyBytes(from: path) }
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
