import Base
import Foundation
import Glibc
import Testing

@testable import rostrum

/// Gives a TCP port of this machine that somebody listens on.
private func withTakenPort(_ body: (UInt16) throws -> Void) throws {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    try #require(descriptor >= 0)
    defer { close(descriptor) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    let isListening = withUnsafeMutablePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { bytes in
            var length = socklen_t(MemoryLayout<sockaddr_in>.size)
            return bind(descriptor, bytes, length) == 0 && listen(descriptor, 1) == 0
                && getsockname(descriptor, bytes, &length) == 0
        }
    }
    try #require(isListening)
    try body(UInt16(bigEndian: address.sin_port))
}

@Suite struct `The ports that the doctor looks at` {
    private func findings(_ flags: String..., process: Int32? = nil) throws -> [Finding] {
        let values = try OptionValues.parse(arguments: ["--dev", "--http", "127.0.0.1:0"] + flags).values
        return PortCheck.examine(
            try Configuration(values, processors: 1), RunningServer(process: process))
    }

    @Test func `are one for each worker where there is a range, and no more of it`() throws {
        let range = try findings("--tcp", "off", "--udp", "127.0.0.1:65533-65535", "--workers", "3")
        #expect(range.map(\.subject) == ["http", "udp", "udp", "udp"])
        for (finding, port) in zip(range.dropFirst(), 65_533...65_535) {
            #expect(finding.text.hasPrefix("UDP 127.0.0.1:\(port) "), "\(finding.text)")
        }
        let longer = try findings("--tcp", "off", "--udp", "127.0.0.1:65000-65009", "--workers", "2")
        #expect(longer.map(\.subject) == ["http", "udp", "udp"])
        let shared = try findings("--tcp", "off", "--udp", "127.0.0.1:65000", "--workers", "8")
        #expect(shared.map(\.subject) == ["http", "udp"])
    }

    @Test func `are those of all that is on, each by its flag`() throws {
        let found = try findings(
            "--admin", "127.0.0.1:0", "--udp", "127.0.0.1:0", "--tcp", "127.0.0.1:0", "--rtmp", "127.0.0.1:0",
            "--rtmps", "127.0.0.1:0", "--srt", "127.0.0.1:0", "--turn-tls", "127.0.0.1:0", "--turn-tcp",
            "127.0.0.1:0", "--turn-udp", "127.0.0.1:0", "--tls-certificate", "/a.pem", "--tls-key", "/a.key")
        let kinds = found.map { "\($0.subject) \($0.text.prefix(3))" }
        #expect(
            kinds == [
                "http TCP", "admin TCP", "ice-tcp TCP", "turn-tls TCP", "turn-tcp TCP", "turn-udp UDP",
                "rtmp TCP", "rtmps TCP", "srt UDP",
            ])
        // What is off is not there to look at; ICE-TCP is on unless it is switched off.
        let least = try findings("--udp", "127.0.0.1:0", "--rtmp", "off", "--srt", "off", "--turn-udp", "off")
        #expect(least.map(\.subject) == ["http", "ice-tcp"])
    }

    @Test func `may be taken, by another program or by the server itself`() throws {
        try withTakenPort { port in
            let flags = ["--udp", "127.0.0.1:0", "--tcp", "off", "--rtmp", "127.0.0.1:\(port)"]
            func found(_ process: Int32?) throws -> Finding? {
                let values = try OptionValues.parse(
                    arguments: ["--dev", "--http", "127.0.0.1:0"] + flags
                ).values
                let server = RunningServer(process: process)
                return PortCheck.examine(try Configuration(values, processors: 1), server).last
            }
            let others = try #require(try found(nil))
            #expect(others.subject == "rtmp" && others.verdict == .fail)
            #expect(others.text == "TCP 127.0.0.1:\(port) is in use by another program")
            #expect(others.remedy?.hasSuffix("set another port with --rtmp") == true)
            let own = try #require(try found(7))
            #expect(own.verdict == .ok && own.text.hasSuffix("in use by the running server (process 7)"))
        }
    }

    /// Port 0 is any that is free, so that a server which runs does not have it.
    @Test func `are free although the server runs, if it was started with others`() throws {
        let found = try findings("--udp", "127.0.0.1:0", "--tcp", "off", process: 7)
        #expect(found.map(\.verdict) == [.warn])
        #expect(found.first?.remedy?.hasSuffix("systemctl restart rostrum") == true)
    }

    @Test func `are of no machine but this`() throws {
        // For documentation alone (RFC 5737), so no machine has it.
        let found = try findings("--udp", "127.0.0.1:0", "--tcp", "off", "--admin", "192.0.2.1:9090")
        #expect(found.map(\.verdict) == [.ok, .fail])
        #expect(found.last?.text == "this machine has no address 192.0.2.1")
        #expect(found.last?.remedy?.hasSuffix("--admin") == true)
    }
}
