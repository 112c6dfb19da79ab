import Base
import Testing

@testable import Peer

@Suite struct `The route of a handshake` {
    private var route = HandshakeRoute()

    private static func address(_ port: UInt16) -> TransportAddress {
        TransportAddress(ip: IPAddress(ipv4: 0xC000_0201), port: port)
    }

    @Test mutating func `is the only address that anything was sent to`() {
        #expect(route.only == nil)
        for isProven in [false, true, false] {
            let isTaken = route.take(Self.address(1), isProven: isProven)
            #expect(isTaken)
            #expect(route.only == Self.address(1))
        }
        _ = route.take(Self.address(2), isProven: true)
        #expect(route.only == nil)
        _ = route.take(Self.address(1), isProven: true)
        #expect(route.only == nil)
    }

    @Test mutating func `ends after as many datagrams as a handshake needs, to whatever addresses`() {
        let sent = (0..<1_000).count { route.take(Self.address($0), isProven: false) }
        #expect(sent == HandshakeRoute.limit)
        let isTaken = route.take(Self.address(7), isProven: true)
        #expect(isTaken)
    }
}
