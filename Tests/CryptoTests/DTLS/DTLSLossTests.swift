import Base
import Crypto
import TestSupport
import Testing

/// A handshake over a network that loses, repeats and reorders.
@Suite struct DTLSLoss {
    /// With 1,200 bytes a flight is one datagram, with 300 up to five.
    static let mtus = [DTLSContext.defaultMTU, 300]

    @Test(arguments: mtus, 0..<8)
    func `mends the loss of any datagram of the client`(_ mtu: Int, _ lost: Int) throws {
        try connect(mtu: mtu, within: .milliseconds(500)) { end, number in
            end == .client && number == lost ? .lose : .deliver
        }
    }

    @Test(arguments: mtus, 0..<8)
    func `mends the loss of any datagram of the server`(_ mtu: Int, _ lost: Int) throws {
        try connect(mtu: mtu, within: .milliseconds(500)) { end, number in
            end == .server && number == lost ? .lose : .deliver
        }
    }

    @Test(arguments: mtus, 0..<8)
    func `mends the loss of the same datagram at both ends`(_ mtu: Int, _ lost: Int) throws {
        try connect(mtu: mtu, within: .seconds(2)) { _, number in number == lost ? .lose : .deliver }
    }

    @Test(arguments: mtus)
    func `is not disturbed when each datagram comes twice`(_ mtu: Int) throws {
        try connect(mtu: mtu, within: .milliseconds(40)) { _, _ in .duplicate }
    }

    @Test(arguments: mtus, 0..<8)
    func `is not disturbed when one datagram comes late`(_ mtu: Int, _ late: Int) throws {
        for end in [DTLSPair.End.client, .server] {
            for delay in [Duration.milliseconds(5), .milliseconds(15), .milliseconds(130)] {
                try connect(mtu: mtu, within: .milliseconds(600)) {
                    $0 == end && $1 == late ? .delay(delay) : .deliver
                }
            }
        }
    }

    /// Each later datagram of a burst arrives before the earlier ones.
    @Test(arguments: mtus)
    func `is not disturbed when flights arrive backwards`(_ mtu: Int) throws {
        try connect(mtu: mtu, within: .seconds(1)) { _, number in .delay(.milliseconds(8 - number % 8)) }
    }

    @Test func `is answered at once when the client says hello again`() throws {
        var pair = try DTLSPair()
        // A browser repeats its hello after 50 ms, twice as soon as the server would repeat its answer.
        pair.fate = { $0 == .server && $1 == 0 ? .lose : .deliver }
        pair.start()
        let hello = try #require(pair.flying.first).bytes
        pair.run(for: .milliseconds(15)) { _ in false }
        pair.now = pair.now + .milliseconds(45)
        #expect(pair.sentByServer == 1)
        pair.perform(pair.server.receive(hello.span, at: pair.now), of: .server)
        #expect(pair.sentByServer == 2)
        // A second copy just behind it changes nothing.
        pair.perform(pair.server.receive(hello.span, at: pair.now), of: .server)
        #expect(pair.sentByServer == 2)
        pair.run()
        try pair.expectSameKeys()
    }

    @Test(arguments: 0..<200)
    func `comes to an end in spite of heavy loss and reordering`(_ seed: Int) throws {
        var random = SeededGenerator(seed: UInt64(seed))
        var fates: [DTLSPair.Fate] = []
        for _ in 0..<400 {
            switch Int.random(in: 0..<10, using: &random) {
            case 0..<3: fates.append(.lose)
            case 3: fates.append(.duplicate)
            case 4..<6: fates.append(.delay(.milliseconds(Int.random(in: 0..<300, using: &random))))
            default: fates.append(.deliver)
            }
        }
        let plan = fates
        try connect(mtu: seed % 2 == 0 ? 1_200 : 300, within: .seconds(25)) { end, number in
            plan[(number * 2 + (end == .client ? 0 : 1)) % plan.count]
        }
    }

    private func connect(
        mtu: Int, within limit: Duration, _ fate: @escaping (DTLSPair.End, Int) -> DTLSPair.Fate
    ) throws {
        var pair = try DTLSPair(mtu: mtu)
        pair.fate = fate
        let begin = pair.now
        pair.start()
        pair.run { ($0.clientMaterial != nil && $0.serverMaterial != nil) || $0.clientClosed != nil }
        #expect(pair.now - begin <= limit)
        #expect(pair.longestDatagram <= mtu)
        try pair.expectSameKeys()
    }
}
