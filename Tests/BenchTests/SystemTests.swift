import Base
import Crypto
import Foundation
import Peer
import TURN
import Testing
import Wire

@testable import sfu_bench

@Suite struct `What the system tells` {
    @Test func `is read past names with blanks and parentheses`() {
        let stat = "42 (a (b) c) S 1 42 42 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 5 0 12345 1000000 500"
        let usage = ProcessFiles.usage(stat: stat, status: "Name:\ta\nVmRSS:\t  2048 kB\nThreads:\t5\n")
        #expect(usage == ProcessFiles.Usage(processorSeconds: 3, residentBytes: 2_097_152))
        #expect(ProcessFiles.usage(stat: "nonsense", status: "") == nil)
        #expect(ProcessFiles.usage(stat: stat, status: "Name:\ta\n") == nil)
    }

    @Test func `includes this process`() throws {
        let own = try #require(ProcessFiles.usage(pid: Int(ProcessInfo.processInfo.processIdentifier)))
        #expect(own.residentBytes > 1_000_000)
        #expect(ProcessFiles.usage(pid: 0) == nil)
    }

    @Test func `includes who listens`() {
        let table = """
              sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
               0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 777 1
               1: 0100007F:1F90 0100007F:9999 01 00000000:00000000 00:00000000 00000000     0        0 778 1
               2: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 779 1
            """
        #expect(ProcessFiles.listeningInodes(table: table, port: 8_080) == [777])
        #expect(ProcessFiles.listeningInodes(table: table, port: 81).isEmpty)
    }

    @Test func `comes from metrics too`() {
        let metrics = """
            # TYPE process_cpu_seconds_total counter
            process_cpu_seconds_total 12.5
            process_resident_memory_bytes 4.2e7
            """
        #expect(
            ServerProbe.usage(metrics: metrics)
                == ProcessFiles.Usage(processorSeconds: 12.5, residentBytes: 42_000_000))
        #expect(ProcessFiles.usage(stat: "", status: "") == nil)
        #expect(ServerProbe.usage(metrics: "process_cpu_seconds_total 1\n") == nil)
    }

    @Test func `comes from metrics with labels and times, whatever ends their lines`() {
        let metrics =
            "# HELP process_cpu_seconds_total x\r\nprocess_cpu_seconds_total_created 9\r\n"
            + "process_cpu_seconds_total{job=\"a } b\"} 12.5 1395066363000\r\n"
            + "process_resident_memory_bytes 4.2e7 1395066363000\r\n"
        #expect(
            ServerProbe.usage(metrics: metrics)
                == ProcessFiles.Usage(processorSeconds: 12.5, residentBytes: 42_000_000))
    }

    /// What is no number would make the whole report unwritable.
    @Test(arguments: ["NaN", "+Inf", "-Inf", "-1", "x", "", "{a=\"b\"}"])
    func `comes from no metrics that make no sense`(value: String) {
        func usage(_ seconds: String, _ bytes: String) -> ProcessFiles.Usage? {
            ServerProbe.usage(
                metrics: "process_cpu_seconds_total \(seconds)\nprocess_resident_memory_bytes \(bytes)\n")
        }
        #expect(usage("1", "1") != nil)
        #expect(usage(value, "1") == nil)
        #expect(usage("1", value) == nil)
        #expect(usage("1", "1e15") == nil)
    }

    @Test func `includes who listens by IPv6`() {
        let address = String(repeating: "0", count: 32)
        func line(_ inode: String) -> String {
            " 0: \(address):1F90 \(address):0000 0A 0:0 0:0 0 1000 0 \(inode) 1\n"
        }
        let table = " sl local_address remote_address st\n" + line("99") + " 1: short\n" + line("x")
        #expect(ProcessFiles.listeningInodes(table: table, port: 8_080) == [99])
        #expect(ProcessFiles.listeningInodes(table: "", port: 8_080).isEmpty)
    }

    @Test func `says how long threads ran and waited`() {
        #expect(
            ProcessFiles.threadTime(schedstat: "100 20 3\n") == ProcessFiles.ThreadTime(ran: 100, waited: 20))
        #expect(ProcessFiles.threadTime(schedstat: "x") == nil)
    }
}

@Suite struct `A token` {
    /// The example of RFC 7515 §A.1 with its key, checked by its parts.
    @Test func `is signed by HMAC-SHA256 over its first two parts`() throws {
        let claims = TokenSource.Claims(
            iss: "dev", sub: "ann", name: "Ann", stream: "s1", role: "viewer", nbf: 1, exp: 2)
        let (token, other) = (
            JSONWebToken.sign(claims, with: Array("secret".utf8).span),
            JSONWebToken.sign(claims, with: Array("other".utf8).span)
        )
        let parts = try #require(token).split(separator: ".").map(String.init)
        #expect(parts.count == 3)
        let padded = parts[1].replacingOccurrences(of: "-", with: "+").replacingOccurrences(
            of: "_", with: "/")
        let body = Data(base64Encoded: padded + String(repeating: "=", count: (4 - padded.count % 4) % 4))
        let text = String(decoding: body ?? Data(), as: UTF8.self)
        #expect(
            text == #"{"exp":2,"iss":"dev","name":"Ann","nbf":1,"role":"viewer","stream":"s1","sub":"ann"}"#)
        #expect(parts[2].count == 43)
        #expect(try #require(other).split(separator: ".").last.map(String.init) != parts[2])
    }
}

@Suite struct `A server's addresses` {
    private func candidate(_ address: String) throws -> ICECandidate {
        ICECandidate(host: try #require(TransportAddress(address)), index: 0)
    }

    @Test func `are tried on loopback first, then on this machine`() throws {
        let lan = try candidate("192.0.2.7:7000")
        let loopback = try candidate("127.0.0.1:7000")
        let own = [try #require(IPAddress("192.0.2.7"))]
        #expect(try Entrance.usable([lan, loopback], isOwned: false, own: own) == [loopback])
        #expect(try Entrance.usable([lan], isOwned: false, own: own) == [lan])
        let others = [try candidate("192.0.2.7:7001"), try candidate("198.51.100.1:7000")]
        #expect(try Entrance.usable([lan] + others, isOwned: false, own: own) == [lan, others[0]])
    }

    @Test func `are refused elsewhere, even behind a tunnel`() throws {
        let remote = try candidate("198.51.100.1:7000")
        #expect(throws: SignallingError.self) { try Entrance.usable([remote], isOwned: false, own: []) }
        #expect(try Entrance.usable([remote], isOwned: true, own: []) == [remote])
        #expect(throws: SignallingError.self) { try Entrance.usable([], isOwned: true, own: []) }
        #expect(throws: SignallingError.self) {
            try Entrance.usable([remote], of: .tcp, isOwned: true, own: [])
        }
    }
}

@Suite struct `Joining` {
    private func time(_ milliseconds: Int64) -> MonotonicTime {
        MonotonicTime(nanoseconds: milliseconds * 1_000_000)
    }

    @Test func `is told by phases`() throws {
        let log = JoinLog()
        log.begin(1, isViewer: true, at: time(0))
        log.answered(1, requested: time(10), at: time(15))
        log.take([
            Notice(id: 1, milestone: .iceConnected, time: time(17)),
            Notice(id: 1, milestone: .dtlsConnected, time: time(25)),
            Notice(id: 1, milestone: .firstPacket, time: time(30)),
            Notice(id: 1, milestone: .firstFrame, time: time(60)),
            Notice(id: 1, milestone: .firstFrame, time: time(90)),
        ])
        let phases = Bench.phases(log.times())
        #expect(phases.map(\.name) == ["http", "ice", "dtls", "firstPacket", "firstFrame"])
        #expect(phases.map(\.milliseconds.p50) == [5, 2, 8, 20, 50])
        let joins = try #require(Bench.joins(log.times()))
        #expect(joins.handshakes == 1)
        #expect(abs(joins.seconds - 0.015) < 1e-9)
    }

    @Test func `fails with the phase it was in, and keeps the first reason`() {
        let log = JoinLog()
        for id in 1...3 { log.begin(id, isViewer: true, at: time(0)) }
        log.take([Notice(id: 1, milestone: .failed, time: time(1))])
        log.take([
            Notice(id: 2, milestone: .iceConnected, time: time(1)),
            Notice(id: 2, milestone: .failed, time: time(2)),
        ])
        log.fail(1, "something else")
        #expect(log[1]?.outcome == .failed("ICE failed"))
        #expect(log[2]?.outcome == .failed("DTLS failed"))
        #expect(log[3]?.outcome == .joining)
        #expect(log.reason == "ICE failed")
    }

    @Test func `does not fail for who has left`() {
        let log = JoinLog()
        log.begin(1, isViewer: true, at: time(0))
        log.left(1)
        log.take([Notice(id: 1, milestone: .closedByServer, time: time(5))])
        #expect(log[1]?.outcome == .left)
        #expect(log.reason == nil)
    }
}

@Suite struct `A tally` {
    @Test func `adds up and tells what came since`() {
        var first = Tally()
        first.packets = 90
        first.expected = 100
        first.latency.add(1_000)
        var second = first
        second.packets = 190
        second.expected = 205
        second.latency.add(2_000)
        let interval = second.since(first)
        #expect(interval.packets == 100 && interval.expected == 105 && interval.lost == 5)
        #expect(interval.latency.count == 1)
        #expect((first + interval).packets == second.packets)
        #expect(abs(interval.loss - 5.0 / 105) < 1e-12)
    }

    @Test func `knows no loss when more came than was expected`() {
        var tally = Tally()
        tally.packets = 5
        #expect(tally.lost == 0 && tally.loss == 0)
    }

    @Test func `tells reordered, repaired and duplicate packets apart`() {
        var tally = Tally()
        tally.count(.new(10), expected: 1, newestBefore: nil, isVideo: true)
        tally.count(.new(12), expected: 2, newestBefore: 10, isVideo: true)
        tally.count(.new(11), expected: 0, newestBefore: 12, isVideo: true)
        tally.count(.duplicate(11), expected: 0, newestBefore: 12, isVideo: true)
        tally.count(.repaired(13), expected: 1, newestBefore: 12, isVideo: false)
        #expect(tally.packets == 4 && tally.expected == 4 && tally.videoPackets == 3)
        #expect(tally.reordered == 1 && tally.duplicates == 1 && tally.repaired == 1)
    }
}

@Suite struct RelayLinkTests {
    @Test func `names a relay by UDP, its user and its password`() throws {
        let links = #"""
            <stun:192.0.2.1:3478>; rel="ice-server", <turn:192.0.2.1:443?transport=tcp>; rel="ice-server"; \#
            username="1:a"; credential="x", <turn:192.0.2.2:3478?transport=udp>; rel="ice-server"; username="2:b"; \#
            credential="q\"u, \\o"; credential-type="password", </whep/s/events>; rel="urn:x"
            """#
        let relay = try #require(TURNClientAgent.Relay(links: links))
        #expect(relay.address == TransportAddress(ip: IPAddress(ipv4: 0xC000_0202), port: 3_478))
        #expect(relay.username == "2:b" && relay.password == #"q"u, \o"#)
        let ipv6 = #"<turn:[::1]:3478?transport=udp>; rel="ice-server"; username="u"; credential="p""#
        #expect(TURNClientAgent.Relay(links: ipv6)?.address.ip.isLoopback == true)
    }

    @Test(arguments: [
        "", "<turn:", #"<turn:192.0.2.1:3478?transport=udp>; rel="ice-server""#,
        #"<turn:example.org:3478?transport=udp>; rel="ice-server"; username="u"; credential="p""#,
        #"<turn:192.0.2.1:3478?transport=udp>; rel="next"; username="u"; credential="p""#,
        #"<turn:192.0.2.1:99999?transport=udp>; rel="ice-server"; username="u"; credential="p""#,
        #"<turn:192.0.2.1:3478?transport=udp>; rel="ice-server"; username="u"; credential="p\"#,
    ])
    func `names none where it is not told all, or by a name alone`(_ links: String) {
        #expect(TURNClientAgent.Relay(links: links) == nil)
    }
}
