import Base
import Crypto
import Foundation
import Glibc
import Testing

@testable import rostrum

@Suite struct `The doctor` {
    private static let now = 1_800_000_000
    private static let day = 86_400

    private func certificate(
        days: Int, names: [String] = ["example.org"],
        change: (inout CertificateCheck.Facts) -> Void = { _ in }
    ) -> Finding {
        var facts = CertificateCheck.Facts(
            names: names, from: Self.now - Self.day, until: Self.now + days * Self.day)
        change(&facts)
        return CertificateCheck.judge(facts, now: Self.now)
    }

    @Test func `judges a certificate`() {
        #expect(certificate(days: 60) == .ok("certificate", "for example.org, valid for 60 days"))
        #expect(certificate(days: 13).verdict == .warn)
        let ended = certificate(days: -3)
        #expect(ended.verdict == .fail && ended.text.contains("expired 3 days ago"))
        #expect(ended.remedy?.contains("systemctl reload rostrum") == true)
        let future = certificate(days: 60) { $0.from = Self.now + 7_200 }
        #expect(future.verdict == .fail && future.text.contains("not valid until 2 hours from now"))
        #expect(certificate(days: 60, names: []).verdict == .fail)
        #expect(certificate(days: 60) { $0.isSelfIssued = true }.verdict == .warn)
        #expect(certificate(days: 60) { $0.lacksChain = true }.remedy?.contains("fullchain.pem") == true)
    }

    @Test func `misses a certificate only where one is needed`() throws {
        func findings(_ flags: String...) throws -> [Finding] {
            let values = try OptionValues.parse(arguments: ["--dev"] + flags).values
            return CertificateCheck.examine(try Configuration(values, processors: 1), now: Self.now)
        }
        #expect(try findings().map(\.verdict) == [.ok])
        #expect(try findings("--http", ":80").map(\.verdict) == [.warn])
        let missing = try findings("--tls-certificate", "/nonexistent/a", "--tls-key", "/nonexistent/b")
        #expect(missing.map(\.verdict) == [.fail] && missing.first?.text.contains("/nonexistent/a") == true)
    }

    @Test func `judges a secret`() {
        #expect(SecretCheck.judge(nil).verdict == .ok)
        #expect(SecretCheck.judge("0123456789abcdef0123456789abcdef").verdict == .ok)
        #expect(SecretCheck.judge("0123456789abcdef").verdict == .fail)
        #expect(SecretCheck.judge(String(repeating: "a", count: 64)).verdict == .fail)
    }

    @Test func `judges ports`() throws {
        let address = try #require(TransportAddress("0.0.0.0:7000"))
        func finding(_ code: Int32?, process: Int32? = nil) -> Finding {
            PortCheck.judge("udp", "udp", address, refusal: code, RunningServer(process: process))
        }
        #expect(finding(nil).verdict == .ok)
        #expect(finding(nil, process: 7).verdict == .warn)
        #expect(finding(EADDRINUSE, process: 7).verdict == .ok)
        let taken = finding(EADDRINUSE)
        #expect(taken.verdict == .fail && taken.remedy?.contains("ss -lunp 'sport = :7000'") == true)
        #expect(finding(EACCES).verdict == .warn)
        #expect(finding(EADDRNOTAVAIL).verdict == .fail)
        #expect(finding(EIO).verdict == .fail)
    }

    @Test func `looks at the ports of all workers`() throws {
        let values = try OptionValues.parse(arguments: [
            "--dev", "--http", "127.0.0.1:0", "--udp", "127.0.0.1:0", "--tcp", "off", "--workers", "3",
        ]).values
        let findings = PortCheck.examine(
            try Configuration(values, processors: 1), RunningServer(process: nil))
        // Port 0 is always free, and says nothing of workers.
        #expect(findings.map(\.subject) == ["http"] && findings.allSatisfy { $0.verdict == .ok })
    }

    @Test func `tells who shares a port`() throws {
        let values = try OptionValues.parse(arguments: [
            "--dev", "--http", "127.0.0.1:11", "--udp", "127.0.0.1:0", "--tcp", "127.0.0.1:11",
            "--turn-tcp", "127.0.0.1:11",
        ]).values
        let findings = PortCheck.examine(
            try Configuration(values, processors: 1), RunningServer(process: nil))
        #expect(findings.map(\.subject) == ["http", "ice-tcp", "turn-tcp"])
        #expect(
            findings.map { $0.text.split(separator: ", and ").last } == [
                "shared with --tcp, --turn-tcp", "shared with --http, --turn-tcp",
                "shared with --http, --tcp",
            ])
    }

    @Test func `looks at the ports of encoders`() throws {
        let values = try OptionValues.parse(arguments: [
            "--dev", "--http", "127.0.0.1:0", "--udp", "127.0.0.1:0", "--tcp", "off", "--rtmp", "127.0.0.1:0",
            "--srt", "127.0.0.1:0",
        ]).values
        let findings = PortCheck.examine(
            try Configuration(values, processors: 1), RunningServer(process: nil))
        #expect(findings.map(\.subject) == ["http", "rtmp", "srt"])
        #expect(findings.map { $0.text.prefix(3) } == ["TCP", "TCP", "UDP"])
    }

    @Test(arguments: [
        (["127.0.0.1", "::1"], Finding.Verdict.warn), (["10.1.2.3", "127.0.0.1"], .warn),
        (["172.31.0.1"], .warn),
        (["172.32.0.1"], .ok), (["192.168.1.1"], .warn), (["100.64.0.1"], .warn), (["100.128.0.1"], .ok),
        (["fd00::1"], .warn), (["fe80::1"], .warn), (["2001:db8::1"], .ok),
        (["203.0.113.7", "10.1.2.3"], .ok),
    ])
    func `judges addresses`(_ texts: [String], _ verdict: Finding.Verdict) throws {
        let addresses = try texts.map { try #require(IPAddress($0)) }
        #expect(AddressCheck.judge(addresses).verdict == verdict)
    }

    @Test func `judges the machine`() {
        let now = Date(timeIntervalSince1970: Double(Self.now))
        #expect(MachineCheck.judgeClock(isSynchronised: true, now: now).verdict == .ok)
        #expect(MachineCheck.judgeClock(isSynchronised: false, now: now).verdict == .warn)
        #expect(MachineCheck.judgeClock(isSynchronised: nil, now: now).verdict == .warn)
        #expect(MachineCheck.judgeBuffers([("rmem_max", 4 << 20), ("wmem_max", nil)]).verdict == .ok)
        let small = MachineCheck.judgeBuffers([("rmem_max", 212_992), ("wmem_max", 8 << 20)])
        #expect(
            small.verdict == .warn && small.remedy?.hasSuffix("sysctl -w net.core.rmem_max=4194304") == true)
        func files(_ limit: Int?, sessions: Int? = 20_000) -> Finding.Verdict {
            MachineCheck.judgeOpenFiles(limit: limit, sessions: sessions, isServers: false).verdict
        }
        #expect(files(65_536) == .ok && files(1_024) == .warn && files(100) == .fail && files(nil) == .warn)
        #expect(files(1_024, sessions: 10) == .ok || files(1_100, sessions: 10) == .ok)
        #expect(MachineCheck.openFiles(sessions: 1, process: getpid()).text.contains("the running server"))
        func goesFirst(_ limit: Int?, _ capabilities: UInt64?) -> Bool {
            MachineCheck.judgePriority(niceLimit: limit, capabilities: capabilities).text.contains(
                "have priority")
        }
        #expect(goesFirst(28, 0) && goesFirst(0, 1 << 23) && goesFirst(40, nil))
        #expect(!goesFirst(27, ~(1 << 23)) && !goesFirst(nil, nil))
        #expect(
            MachineCheck.workerPriority(process: getpid()) == MachineCheck.workerPriority(process: nil))
    }

    @Test func `judges the disk`() {
        func verdict(_ free: Int64, _ time: Duration?) -> Finding.Verdict {
            DiskCheck.judge("/data", free: free, durableAfter: time).verdict
        }
        #expect(verdict(100 << 30, .milliseconds(2)) == .ok)
        #expect(verdict(100 << 30, .milliseconds(80)) == .warn)
        #expect(verdict(1 << 30, .milliseconds(2)) == .warn)
        #expect(verdict(1 << 20, .milliseconds(2)) == .fail)
        #expect(verdict(100 << 30, nil) == .fail)
        #expect(
            DiskCheck.judge("/data", free: 4 << 30, durableAfter: .microseconds(1_500)).text
                == "/data has 4096 MB free, durable writes take 1.5 ms")
    }

    @Test func `writes in the data's directory and leaves nothing there`() throws {
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        // It is not made for a trial.
        let absent = DiskCheck.examine(directory.appendingPathComponent("a/b").path)
        #expect(absent.first?.text.contains("durable") == false)
        #expect(!FileManager.default.fileExists(atPath: directory.path))
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        #expect(DiskCheck.examine(directory.path).first?.text.contains("durable") == true)
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path).isEmpty)
        #expect(DiskCheck.examine("/dev/null/data").map(\.verdict) == [.fail])
        // Of a name of one letter Foundation knows no folder.
        #expect(DiskCheck.examine("~").count == 1)
    }

    @Test func `judges codecs and transcoder`() {
        #expect(TranscoderCheck.judgeCodecs([("VP8", true), ("H264", true)]) == .ok("codecs", "VP8, H264"))
        #expect(TranscoderCheck.judgeCodecs([("VP8", true), ("H264", false)]).verdict == .warn)
        func verdict(_ hasDrawn: Bool, _ complaints: [String]) -> Finding.Verdict {
            TranscoderCheck.judge(hasDrawn: hasDrawn, complaints: complaints, mustBeConfined: true).verdict
        }
        #expect(verdict(true, []) == .ok && verdict(true, ["files: no"]) == .warn)
        #expect(verdict(false, []) == .fail && verdict(false, ["files: no"]) == .fail)
    }

    @Test func `says what it found in lines, and in JSON`() {
        let findings = [
            Finding.ok("config", "good"), .warn("clock", "late", remedy: "set it"),
            .fail("disk", "full", remedy: "mend it"),
        ]
        #expect(
            findings.map(\.line) == [
                "ok    config          good", "warn  clock           late: set it",
                "fail  disk            full: mend it",
            ])
        #expect(findings.hasFailed && !Array(findings.prefix(2)).hasFailed)
        #expect(
            [findings[1]].json.text
                == "{\"checks\":[{\"remedy\":\"set it\",\"subject\":\"clock\",\"text\":\"late\",\"verdict\":\"warn\"}],\"ok\":true}"
        )
    }

    @Test func `goes on where the configuration makes no sense`() async throws {
        let values = try OptionValues.parse(arguments: ["--workers", "0"]).values
        let findings = await Doctor(values, complaint: nil, processors: 1).examine()
        #expect(findings.first?.verdict == .fail && findings.first?.text.contains("1 to 256") == true)
        #expect(
            findings.map(\.subject) == ["config", "clock", "socket-buffers", "open-files", "worker-priority"])
        #expect(await Doctor(nil, complaint: "no file", processors: 1).examine().first?.text == "no file")
    }

    @Test func `knows the server that runs by its lock, and no other process`() throws {
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        #expect(RunningServer(dataDirectory: directory.path).process == nil)
        // Process 1 is another program.
        for text in ["1\n", "", "x", "-1", "\(getpid())\n"] {
            try Data(text.utf8).write(to: directory.appendingPathComponent("rostrum.lock"))
            #expect(RunningServer(dataDirectory: directory.path).process == nil)
        }
    }
}
