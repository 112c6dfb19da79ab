import Base
import Foundation
import Glibc
import Testing

@testable import rostrum

@Suite struct `A finding of the doctor` {
    private static let now = 1_800_000_000

    private func certificate(
        from: Int = Self.now - 100, until: Int, names: [String] = ["example.org"], isSelfIssued: Bool = false
    ) -> Finding {
        CertificateCheck.judge(
            .init(names: names, from: from, until: until, isSelfIssued: isSelfIssued), now: Self.now)
    }

    @Test func `changes with the very second of a certificate`() {
        let later = Self.now + 100 * 86_400
        #expect(certificate(from: Self.now, until: later).verdict == .ok)
        #expect(certificate(from: Self.now + 1, until: later).verdict == .fail)
        #expect(certificate(until: Self.now).text == "for example.org, expired 0 hours ago")
        #expect(certificate(until: Self.now).verdict == .fail)
        #expect(certificate(until: Self.now + 1).text == "for example.org, valid for 0 hours")
        #expect(certificate(until: Self.now + 1).verdict == .warn)
        #expect(certificate(until: Self.now + 14 * 86_400 - 1).verdict == .warn)
        #expect(certificate(until: Self.now + 14 * 86_400).verdict == .ok)
        #expect(certificate(until: Self.now + 2 * 86_400 - 1).text.hasSuffix("valid for 47 hours"))
        #expect(certificate(until: Self.now + 2 * 86_400).text.hasSuffix("valid for 2 days"))
    }

    @Test func `is the worst of several, and names no more hosts than one reads`() {
        let many = (1...9).map { "h\($0).example" }
        let old = certificate(until: Self.now - 1, names: [], isSelfIssued: true)
        #expect(old.text.contains("for no names, expired"))
        #expect(certificate(until: Self.now + 9, names: [], isSelfIssued: true).verdict == .fail)
        let soon = certificate(until: Self.now + 9, names: many, isSelfIssued: true)
        #expect(soon.verdict == .warn && !soon.text.contains("self-signed"))
        #expect(soon.text.hasPrefix("for h1.example, h2.example, h3.example, h4.example, valid"))
        let own = certificate(until: Self.now + 90 * 86_400, isSelfIssued: true)
        #expect(own.verdict == .warn && own.text.hasSuffix("valid for 90 days, self-signed"))
    }

    @Test(arguments: [
        (0o600, true), (0o640, true), (0o660, true), (0o604, false), (0o602, false), (0o601, false),
        (0o777, false),
    ])
    func `tells of a secret that everyone can read`(mode: Int, isGood: Bool) throws {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString).path
        try Data("x".utf8).write(to: URL(filePath: path))
        defer { unlink(path) }
        try #require(chmod(path, mode_t(mode)) == 0)
        let key = Configuration.SigningKey(
            id: "k", secret: Secret("0123456789abcdef0123456789abcdef"))
        let found = SecretCheck.examine(key, file: path)
        #expect((found.verdict == .ok) == isGood)
        #expect(isGood || found.remedy == "run chmod o= \(path), and replace the key")
        #expect(!found.line.contains("0123456789abcdef"))
    }

    @Test func `judges a secret that is in no file, or in one that is gone, by itself`() {
        let weak = Configuration.SigningKey(id: "k", secret: Secret("short"))
        #expect(SecretCheck.examine(weak, file: nil).text == "5 bytes, but at least 32 are needed")
        #expect(SecretCheck.examine(weak, file: "/nonexistent/secret").verdict == .fail)
        // Seven different characters are too few, eight are enough.
        #expect(SecretCheck.judge(String(repeating: "abcdefg", count: 10)).verdict == .fail)
        #expect(SecretCheck.judge(String(repeating: "abcdefgh", count: 4)).verdict == .ok)
        // Counted in bytes, as the key is.
        #expect(SecretCheck.judge("äöüäöüäöüäöüßÄÖÜ").text == "32 bytes")
    }

    @Test func `of a disk changes at its limits`() {
        func found(_ free: Int64, _ time: Duration? = .zero) -> Finding {
            DiskCheck.judge("/d", free: free, durableAfter: time)
        }
        #expect(found(64 << 20 - 1).verdict == .fail && found(64 << 20).verdict == .warn)
        #expect(found(2 << 30 - 1).verdict == .warn && found(2 << 30).verdict == .ok)
        let room: Int64 = 100 << 30
        #expect(found(room, .milliseconds(50)).verdict == .ok)
        #expect(found(room, .milliseconds(50) + .nanoseconds(1)).verdict == .warn)
        // What is not measured is not told.
        #expect(found(0).text == "/d has 0 MB free")
        #expect(found(0, nil).text == "cannot write to /d")
    }

    @Test func `tells how slow a disk is, even if that takes seconds`() {
        func text(_ time: Duration) -> String {
            DiskCheck.judge("/d", free: 4 << 30, durableAfter: time).text
        }
        #expect(text(.milliseconds(1_500)).hasSuffix("durable writes take 1500.0 ms"))
        #expect(text(.seconds(12)).hasSuffix("durable writes take 12000.0 ms"))
        #expect(text(.microseconds(20)).hasSuffix("durable writes take 0.02 ms"))
    }

    @Test func `of the kernel's buffers names all that are too small`() {
        let both = MachineCheck.judgeBuffers([("rmem_max", 1), ("wmem_max", 4 << 20 - 1)])
        #expect(both.text == "net.core.rmem_max is 1, net.core.wmem_max is 4194303")
        #expect(both.remedy?.hasSuffix("net.core.rmem_max=4194304 net.core.wmem_max=4194304") == true)
        #expect(MachineCheck.judgeBuffers([("rmem_max", nil), ("wmem_max", nil)]).verdict == .ok)
        #expect(MachineCheck.judgeBuffers([]).verdict == .ok)
    }

    @Test func `of open files follows the sessions, up to what any server needs`() {
        func found(_ limit: Int, _ sessions: Int?) -> Finding {
            MachineCheck.judgeOpenFiles(limit: limit, sessions: sessions, isServers: true)
        }
        #expect(found(20_999, nil).verdict == .warn && found(21_000, nil).verdict == .ok)
        #expect(found(1_009, 10).verdict == .warn && found(1_010, 10).verdict == .ok)
        #expect(found(65_535, 1_000_000).verdict == .warn && found(65_536, 1_000_000).verdict == .ok)
        #expect(found(255, 1).verdict == .fail && found(256, 1).verdict == .warn)
        #expect(found(.max, 1_000_000).verdict == .ok)
        #expect(found(300, 1).remedy?.contains("LimitNOFILE=1001") == true)
    }

    @Test(arguments: [
        (["172.15.255.255"], Finding.Verdict.ok), (["172.16.0.0"], .warn), (["192.169.0.1"], .ok),
        (["100.63.255.255"], .ok), (["100.127.255.255"], .warn), (["169.254.1.1"], .warn),
        (["169.255.1.1"], .ok), (["11.0.0.1"], .ok), (["fc00::1"], .warn), (["fe00::1"], .ok),
        (["febf::1"], .warn), (["fec0::1"], .ok), (["::ffff:10.0.0.1"], .warn), ([], .warn),
        (["127.0.0.1", "fe80::1", "2001:db8::1"], .ok),
    ])
    func `of addresses knows the edges of private networks`(
        texts: [String], verdict: Finding.Verdict
    ) throws {
        let addresses = try texts.map { try #require(IPAddress($0)) }
        #expect(AddressCheck.judge(addresses).verdict == verdict)
    }

    @Test func `of addresses names six at most`() throws {
        let many = try (1...9).map { try #require(IPAddress("203.0.113.\($0)")) }
        let text = AddressCheck.judge(many).text
        #expect(text.contains("203.0.113.6;") && !text.contains("203.0.113.7"))
    }

    @Test func `of a port says how to find who has it`() throws {
        let address = try #require(TransportAddress("[::1]:443")).over(.tcp)
        func found(_ code: Int32) -> Finding {
            PortCheck.judge("http", "http", address, refusal: code, RunningServer(process: nil))
        }
        #expect(found(EADDRINUSE).remedy?.hasPrefix("ss -ltnp 'sport = :443'") == true)
        #expect(found(EADDRINUSE).remedy?.hasSuffix("--http") == true)
        #expect(found(EADDRNOTAVAIL).text == "this machine has no address ::1")
        #expect(found(EAFNOSUPPORT).text.hasPrefix("TCP [::1]:443: "))
    }

    @Test func `is JSON, whatever it found`() throws {
        let finding = Finding.fail("a-subject-that-is-long", "say \"no\"\n\u{1}é", remedy: "back\\slash")
        #expect(finding.line.hasPrefix("fail  a-subject-that-is-long say"))
        let bytes = Data([finding].json.text.utf8)
        let read = try #require(try JSONSerialization.jsonObject(with: bytes) as? [String: Any])
        let check = try #require((read["checks"] as? [[String: Any]])?.first)
        #expect(check["text"] as? String == finding.text && check["remedy"] as? String == "back\\slash")
        #expect(read["ok"] as? Bool == false)
        #expect([Finding]().json.text == #"{"checks":[],"ok":true}"#)
        #expect(![Finding.warn("a", "b", remedy: "c")].hasFailed)
    }
}
