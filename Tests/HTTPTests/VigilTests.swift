import Base
import TestSupport
import Testing

@testable import HTTP

@Suite struct `The checks of silent WebSockets` {
    private static func vigil(ping: Duration, hangup: Duration) -> Vigil {
        var settings = HTTPServerSettings(address: TransportAddress(ip: .loopback, port: 0))
        settings.webSocketPing = ping
        settings.webSocketHangup = hangup
        return Vigil(settings)
    }

    /// All sockets that are due at a time, in milliseconds.
    private static func due(_ vigil: inout Vigil, at now: UInt64) -> [UInt64] {
        var sockets: [UInt64] = []
        while let socket = vigil.next(at: now) { sockets.append(socket) }
        return sockets
    }

    /// A check is a quarter of the shorter span late at most, and so is a ping or a hang-up.
    @Test(
        arguments: [
            (.seconds(5), .seconds(15), 1_250), (.seconds(8), .seconds(10), 500),
            (.milliseconds(3), .seconds(1), 1), (.zero, .zero, 1), (.seconds(10), .seconds(5), 1),
        ] as [(Duration, Duration, UInt64)])
    func `come a quarter of the shorter span later, and not sooner`(
        ping: Duration, hangup: Duration, interval: UInt64
    ) {
        var vigil = Self.vigil(ping: ping, hangup: hangup)
        vigil.add(7, at: 100)
        let early = Self.due(&vigil, at: 100 + interval - 1)
        let onTime = Self.due(&vigil, at: 100 + interval)
        let again = Self.due(&vigil, at: .max)
        #expect(early == [] && onTime == [7] && again == [])
        // A socket is pinged before it counts as lost, whatever the settings.
        #expect(vigil.hangup > vigil.ping)
    }

    @Test func `are in the order in which sockets were added`() {
        var vigil = Self.vigil(ping: .seconds(4), hangup: .seconds(12))
        for socket in [3, 1, 2] as [UInt64] { vigil.add(socket, at: 10 * socket) }
        // The first is later than the others, which wait for it: times of one clock never go back.
        let none = Self.due(&vigil, at: 1_029)
        let all = Self.due(&vigil, at: 1_030)
        #expect(none == [] && all == [3, 1, 2])
    }

    /// What is done is removed many at a time, and nothing else with it.
    @Test(arguments: [1, 255, 256, 257, 511, 512, 3_000])
    func `miss nobody of many, round after round`(count: Int) {
        var vigil = Self.vigil(ping: .seconds(4), hangup: .seconds(12))
        let sockets = (0..<count).map { UInt64($0) }
        for socket in sockets { vigil.add(socket, at: 0) }
        for round in 1...4 as ClosedRange<UInt64> {
            var seen: [UInt64] = []
            while let socket = vigil.next(at: round * 1_000) {
                seen.append(socket)
                vigil.add(socket, at: round * 1_000)
            }
            #expect(seen == sockets)
        }
    }

    @Test(arguments: 0..<10 as Range<UInt64>)
    func `are each as late as the time says, whoever leaves meanwhile`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var vigil = Self.vigil(ping: .seconds(4), hangup: .seconds(12))
        var dueAt: [UInt64: UInt64] = [:]
        var now: UInt64 = 0
        var next: UInt64 = 0
        for _ in 0..<2_000 {
            now += UInt64.random(in: 0...300, using: &random)
            if Int.random(in: 0..<3, using: &random) > 0 {
                vigil.add(next, at: now)
                dueAt[next] = now + 1_000
                next += 1
            }
            let found = Self.due(&vigil, at: now).sorted()
            let time = now
            let expected = dueAt.filter { $0.value <= time }.keys.sorted()
            #expect(found == expected)
            for socket in found {
                dueAt[socket] = nil
                // Some are gone, and the others are checked again.
                guard socket % 3 > 0 else { continue }
                vigil.add(socket, at: now)
                dueAt[socket] = now + 1_000
            }
        }
    }
}
