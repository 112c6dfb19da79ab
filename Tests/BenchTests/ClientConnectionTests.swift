import Base
import ClientPeer
import Crypto
import Peer
import TestSupport
import Testing
import Wire

/// Collects what a client sends.
private struct Outbox: DatagramSink {
    var datagrams: [(destination: TransportAddress, bytes: [UInt8])] = []

    mutating func append<Failure: Error>(
        to destination: TransportAddress, capacity: Int,
        _ write: (inout MutableSpan<UInt8>) throws(Failure) -> Int
    ) throws(Failure) {
        var bytes = [UInt8](repeating: 0, count: capacity)
        var span = bytes.mutableSpan
        let length = try write(&span)
        guard length > 0 else { return }
        datagrams.append((destination, Array(bytes[..<length])))
    }
}

/// A client whose server does not answer, or not as it should.
@Suite struct `A client alone` {
    private static let servers = (0..<2).map { TransportAddress(ip: .loopback, port: 7_000 + UInt16($0)) }

    private var random = SeededGenerator(seed: 5_245)
    private var sink = Outbox()
    private let connection: ClientConnection

    init() throws {
        let fingerprint = SDPFingerprint(algorithm: "sha-256", bytes: Array(repeating: 7, count: 32))
        let offer = ClientOffer(
            [.playAudio], credentials: ICECredentials(using: &random), fingerprint: fingerprint,
            using: &random)
        let received = try SessionOffer(SessionDescription(parsing: offer.description.text), for: .play)
        // An address by TCP that a client cannot connect to from UDP is not tried.
        let transport = LocalTransport(
            credentials: ICECredentials(using: &random), fingerprint: fingerprint, udp: Self.servers,
            tcp: [TransportAddress(ip: .loopback, port: 7_009)])
        let (_, answer) = try Negotiator().answer(to: received, as: transport, using: &random)
        connection = ClientConnection(
            credentials: offer.credentials, plan: try ClientPlan(answer, to: offer),
            localAddress: TransportAddress(ip: .loopback, port: 9_000),
            dtls: try DTLSContext(identity: DTLSIdentity()), at: .zero, using: &random)
    }

    /// Lets time pass, as long as there is something to do.
    /// - Returns: when there was nothing more.
    private mutating func waitForEnd() -> MonotonicTime {
        var now = MonotonicTime.zero
        for _ in 0..<1_000 {
            guard let due = connection.deadline else { return now }
            now = max(now, due)
            connection.advance(to: now, using: &random, into: &sink)
        }
        Issue.record("it never ends")
        return now
    }

    @Test mutating func `fails once, when no address has answered for long enough`() {
        let end = waitForEnd()
        let events = connection.takeEvents()
        let later = connection.takeEvents()
        #expect(events == [.failed] && later.isEmpty)
        #expect(connection.isClosed && !connection.isConnected && connection.roundTripTime == nil)
        // Seven times each, ever more seldom.
        let destinations = sink.datagrams.map(\.destination)
        #expect(Set(destinations) == Set(Self.servers) && destinations.count == 14)
        #expect(end > MonotonicTime.zero + .seconds(30) && end < MonotonicTime.zero + .seconds(60))
        connection.advance(to: end + .seconds(60), using: &random, into: &sink)
        connection.close(into: &sink)
        let afterwards = connection.takeEvents()
        #expect(sink.datagrams.count == 14 && afterwards.isEmpty)
    }

    @Test mutating func `is over as soon as it is closed, and then tells nothing more`() {
        connection.advance(to: .zero, using: &random, into: &sink)
        let sent = sink.datagrams.count
        connection.close(into: &sink)
        #expect(connection.isClosed && connection.deadline == nil)
        connection.advance(to: MonotonicTime.zero + .seconds(5), using: &random, into: &sink)
        let events = connection.takeEvents()
        #expect(sent == 1 && sink.datagrams.count == 1 && events.isEmpty)
    }

    @Test mutating func `answers nobody who does not know its password`() {
        connection.advance(to: .zero, using: &random, into: &sink)
        let sent = sink.datagrams.count
        let request = sink.datagrams[0].bytes
        // Its own request comes back, and then anything that looks like STUN or media.
        connection.receive(
            request.span, from: Self.servers[0], at: .zero, using: &random, into: &sink)
        for _ in 0..<2_000 {
            var noise = (0..<Int.random(in: 0...60, using: &random)).map { _ in
                UInt8.random(in: 0...255, using: &random)
            }
            if !noise.isEmpty { noise[0] = Bool.random(using: &random) ? noise[0] & 3 : noise[0] | 0x80 }
            connection.receive(noise.span, from: Self.servers[0], at: .zero, using: &random, into: &sink)
        }
        let events = connection.takeEvents()
        #expect(sink.datagrams.count == sent && events.isEmpty && !connection.isClosed)
    }

    @Test func `cannot read media before it has keys`() {
        for (length, error) in [(40, .notReady), (11, .truncated), (0, .truncated)]
            as [(Int, SRTPError)]
        {
            #expect(throws: error) {
                var packet = [UInt8](repeating: 0, count: length)
                if length > 0 { packet[0] = 0x80 }
                var span = packet.mutableSpan
                _ = try connection.unprotect(&span)
            }
        }
        #expect(throws: SRTPError.notReady) {
            var packet = [UInt8](repeating: 0x80, count: 40)
            var span = packet.mutableSpan
            _ = try connection.unprotectControl(&span)
        }
    }

    @Test mutating func `sends nothing but checks before it is connected`() {
        connection.sendControl([0x80, 201, 0, 1, 0, 0, 0, 1], into: &sink)
        connection.closeDataChannel(0, at: .zero, into: &sink)
        var failure: DataChannelError?
        do throws(DataChannelError) {
            try connection.send(DataChannelMessage("hello"), on: 0, at: .zero, into: &sink)
        } catch {
            failure = error
        }
        #expect(failure == .noChannel && sink.datagrams.isEmpty)
    }
}
