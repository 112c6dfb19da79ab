import Base
import Foundation
import Restream
import TestSupport
import Testing

@Suite struct `The address of a target` {
    @Test(arguments: [
        ("rtmp://a.rtmp.youtube.com/live2", "a.rtmp.youtube.com", 1_935, "live2", false),
        ("rtmps://live-api-s.facebook.com:443/rtmp/", "live-api-s.facebook.com", 443, "rtmp", true),
        ("RTMPS://Live.Example.org:1936/app/instance", "live.example.org", 1_936, "app/instance", true),
        ("rtmp://192.0.2.7:1935/live", "192.0.2.7", 1_935, "live", false),
        ("rtmp://[2001:db8::7]/live", "2001:db8::7", 1_935, "live", false),
        ("rtmps://[2001:db8::7]:8443/live", "2001:db8::7", 8_443, "live", true),
    ]) func `is read`(text: String, host: String, port: UInt16, application: String, isSecure: Bool) throws {
        let address = try RestreamAddress(text)
        #expect((address.host, address.port) == (host, port))
        #expect(address.application == application && address.isSecure == isSecure)
        // What it says of itself is it again, also as it is stored.
        #expect(try RestreamAddress(address.description) == address)
        let stored = try JSONEncoder().encode([address])
        #expect(try JSONDecoder().decode([RestreamAddress].self, from: stored) == [address])
    }

    @Test(arguments: [
        ("http://live.example.org/app", RestreamAddress.Failure.scheme), ("live.example.org/app", .scheme),
        ("rtmp:///app", .host), ("rtmp://live..org/app", .host), ("rtmp://a b/app", .host),
        ("rtmp://[::1/app", .host), ("rtmp://[127.0.0.1]/app", .host), ("rtmp://0x7f.1/app", .host),
        ("rtmp://2130706433/app", .host), ("rtmp://127.1/app", .host), ("rtmp://localhost./app", .host),
        ("rtmp://live.example.org:25/app", .port), ("rtmp://live.example.org:/app", .port),
        ("rtmp://live.example.org:70000/app", .port), ("rtmp://live.example.org:+80/app", .port),
        ("rtmp://live.example.org", .application), ("rtmp://live.example.org/", .application),
        ("rtmp://live.example.org/a b", .application), ("rtmp://live.example.org/a\r\nb", .application),
        ("rtmp://ann:pw@live.example.org/app", .secret), ("rtmp://live.example.org/app?key=1", .secret),
        ("rtmp://live.example.org/app#1", .secret),
        ("rtmp://" + String(repeating: "a", count: 600) + "/app", .tooLong),
    ]) func `is refused`(text: String, failure: RestreamAddress.Failure) {
        #expect(throws: failure) { try RestreamAddress(text) }
    }

    @Test func `survives random text`() {
        var random = SeededGenerator(seed: 19)
        let alphabet = Array("rtmps:/@.[]?#0aZ-é \n")
        for _ in 0..<5_000 {
            let rest = (0..<Int.random(in: 0...30, using: &random)).map { _ in
                alphabet[Int.random(in: 0..<alphabet.count, using: &random)]
            }
            let text = (Bool.random(using: &random) ? "rtmp://" : "") + String(rest)
            guard let address = try? RestreamAddress(text) else { continue }
            #expect((try? RestreamAddress(address.description)) == address, "\(text)")
        }
    }

    @Test func `goes with a key in printable ASCII`() {
        for key in ["abcd-1234", "talk?token=a.b.c", String(repeating: "k", count: 2_000)] {
            #expect(RestreamAddress.isKey(key))
        }
        for key in ["", "a b", "a\n", "é", String(repeating: "k", count: 2_001)] {
            #expect(!RestreamAddress.isKey(key))
        }
    }
}

@Suite struct `The networks of targets` {
    @Test(arguments: [
        "8.8.8.8", "192.0.1.1", "100.63.255.255", "172.15.0.1", "172.32.0.1", "203.0.112.1",
        "2606:4700::1111",
        "2a00:1450:4001:81b::200e",
    ]) func `include the Internet`(text: String) throws {
        let address = try #require(IPAddress(text))
        #expect(TargetNetworks.publicOnly.permits(address))
    }

    @Test(arguments: [
        "0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "127.0.0.1", "127.255.1.1", "169.254.169.254",
        "172.16.0.1", "172.31.255.255", "192.0.0.8", "192.0.2.1", "192.88.99.1", "192.168.1.1", "198.18.0.1",
        "198.19.255.255", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.1.1.1", "240.0.0.1",
        "255.255.255.255", "::", "::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::7f00:1", "64:ff9b::7f00:1",
        "64:ff9b:1::1", "100::1", "fc00::1", "fd12::1", "fe80::1", "fec0::1", "ff02::1", "2001::1",
        "2001:2::1", "2001:20::1", "2001:db8::1", "2002:7f00:1::1", "3fff::1",
    ]) func `exclude what the Internet does not reach`(text: String) throws {
        let address = try #require(IPAddress(text))
        #expect(!TargetNetworks.publicOnly.permits(address))
        #expect(TargetNetworks.all.permits(address) == !address.isUnspecified)
    }
}

@Suite struct `The list of targets` {
    @Test func `numbers each once, and has a bound`() throws {
        var list = RestreamList()
        let address = try RestreamAddress("rtmp://live.example.org/app")
        for number in 1...RestreamList.limit {
            #expect(try list.add(address, key: Secret("k\(number)")).number == number)
        }
        #expect(throws: RestreamList.Refusal.full) { try list.add(address, key: Secret("k")) }
        #expect(throws: RestreamList.Refusal.duplicate) { try list.add(address, key: Secret("k1")) }
        #expect(list.remove(8) && !list.remove(8))
        #expect(try list.add(address, key: Secret("k8")).number == 9)
        let stored = try JSONEncoder().encode(list)
        #expect(try JSONDecoder().decode(RestreamList.self, from: stored) == list)
        #expect(!"\(list)".contains("k8"))
    }
}

@Suite struct `The schedule of a target that fails` {
    @Test func `doubles up to a minute, and begins anew after it went well`() {
        var random = SeededGenerator(seed: 20)
        var schedule = RestreamSchedule()
        var waits: [Duration] = []
        for _ in 0..<40 { waits.append(schedule.fail(after: .zero, using: &random)) }
        for (wait, seconds) in zip(waits, [1, 2, 4, 8, 16, 32, 60, 60]) {
            #expect(wait >= .seconds(seconds) && wait <= .seconds(seconds) * 1.2)
        }
        #expect(waits.allSatisfy { $0 <= RestreamSchedule.longest * 1.2 })
        #expect(schedule.fail(after: .seconds(29), using: &random) >= .seconds(60))
        #expect(schedule.fail(after: .seconds(30), using: &random) <= .seconds(1) * 1.2)
    }
}
