import Foundation
import Glibc
import Testing

@testable import rostrum

/// A socket that receives what a service is told to say.
private final class NotifySocket {
    let descriptor: Int32

    /// - Parameter name: a path, or @ and a name.
    init(_ name: String) throws {
        descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let path = name.hasPrefix("@") ? [0] + Array(name.utf8.dropFirst()) : Array(name.utf8)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path) }
        let length = socklen_t(2 + path.count)
        let result = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(descriptor, $0, length) }
        }
        try #require(result == 0)
    }

    deinit {
        close(descriptor)
    }

    /// What has been said already; nil for nothing.
    func next() -> String? {
        var bytes = [UInt8](repeating: 0, count: 4_096)
        let count = recv(descriptor, &bytes, bytes.count, Int32(MSG_DONTWAIT))
        return count < 0 ? nil : String(decoding: bytes.prefix(count), as: UTF8.self)
    }
}

@Suite struct `The service manager` {
    @Test(arguments: [false, true]) func `is told how it goes`(isAbstract: Bool) throws {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString).path
        defer { unlink(path) }
        let name = isAbstract ? "@rostrum-\(UUID().uuidString)" : path
        let socket = try NotifySocket(name)
        let manager = ServiceManager(environment: ["NOTIFY_SOCKET": name])
        manager.notify(.ready("ready http=127.0.0.1:8080"))
        #expect(socket.next() == "READY=1\nSTATUS=ready http=127.0.0.1:8080")
        manager.notify(.alive)
        #expect(socket.next() == "WATCHDOG=1")
        manager.notify(.reloading)
        let reloading = try #require(socket.next()).split(separator: "\n")
        #expect(reloading.first == "RELOADING=1")
        let time = try #require(reloading.last.flatMap { Int($0.dropFirst("MONOTONIC_USEC=".count)) })
        #expect(time > 0)
        manager.notify(.stopping)
        #expect(socket.next() == "STOPPING=1" && socket.next() == nil)
    }

    @Test(arguments: ["", "relative", "/nonexistent/socket", "/" + String(repeating: "a", count: 200)])
    func `may not be there`(_ name: String) {
        ServiceManager(environment: ["NOTIFY_SOCKET": name]).notify(.alive)
        ServiceManager(environment: [:]).notify(.alive)
    }

    /// A socket's address has room for 108 bytes, of which a path needs one for its end.
    @Test(arguments: [false, true])
    func `may have the longest name that there is, and is not told under a part of a longer one`(
        isAbstract: Bool
    ) throws {
        let folder = FileManager.default.temporaryDirectory.path
        var name = (isAbstract ? "@" : folder + "/") + UUID().uuidString
        name += String(repeating: "a", count: 107 - name.utf8.count)
        defer { unlink(name) }
        let socket = try NotifySocket(name)
        ServiceManager(environment: ["NOTIFY_SOCKET": name + "a"]).notify(.alive)
        #expect(socket.next() == nil)
        ServiceManager(environment: ["NOTIFY_SOCKET": name]).notify(.alive)
        #expect(socket.next() == "WATCHDOG=1" && socket.next() == nil)
    }

    @Test func `wants signs of life only from the process that it means`() {
        func timeout(_ environment: [String: String]) -> Duration? {
            ServiceManager(environment: environment, process: 7).watchdogTimeout
        }
        #expect(timeout([:]) == nil)
        #expect(timeout(["WATCHDOG_USEC": "30000000"]) == .seconds(30))
        #expect(timeout(["WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "7"]) == .seconds(30))
        #expect(timeout(["WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "8"]) == nil)
        for wrong in ["", "0", "-1", "soon"] { #expect(timeout(["WATCHDOG_USEC": wrong]) == nil) }
    }
}
