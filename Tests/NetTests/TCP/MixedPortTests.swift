import Base
import CLinux
import Crypto
import Glibc
import TestSupport
import Testing
import Wire

@testable import Net

/// Keeps what it hears, and answers each piece of STUN.
private final class Keeper: StreamConversation {
    private let heard: Watched<[UInt8]>
    private var output: [UInt8] = []
    let deadline: MonotonicTime? = nil
    let isOver = false

    init(_ heard: Watched<[UInt8]>) { self.heard = heard }

    var isEstablished: Bool { true }

    func receive(_ bytes: Span<UInt8>, at now: MonotonicTime) {
        let copy = (0..<bytes.count).map { bytes[$0] }
        heard.change { $0 += copy }
        output += Array("heard".utf8)
    }

    func perform(_ command: Int, at now: MonotonicTime) {}
    func advance(to now: MonotonicTime) {}

    func takeOutput(waiting: Int) -> [UInt8] {
        defer { output = [] }
        return output
    }

    func lose(at now: MonotonicTime) {}
}

/// What an HTTP server got.
private final class Guest: Sendable {
    let descriptor: Int32
    let client: TransportAddress
    let isDecrypted: Bool

    init(_ descriptor: Int32, _ client: TransportAddress, _ isDecrypted: Bool) {
        self.descriptor = descriptor
        self.client = client
        self.isDecrypted = isDecrypted
    }

    deinit { clinux_close(descriptor) }

    /// Waits until so many bytes have come, or no more do.
    func receive(_ count: Int) -> [UInt8] {
        var found: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4_096)
        while found.count < count, clinux_wait_readable(descriptor, 60_000) > 0 {
            let got = buffer.withUnsafeMutableBytes {
                Int(clinux_stream_receive(descriptor, $0.baseAddress, Int32(clamping: $0.count)))
            }
            guard got > 0 else { break }
            found += buffer.prefix(got)
        }
        return found
    }

    func send(_ bytes: [UInt8]) {
        var rest = bytes[...]
        while !rest.isEmpty, clinux_wait_writable(descriptor, 60_000) > 0 {
            let sent = rest.withUnsafeBytes {
                Int(clinux_stream_send(descriptor, $0.baseAddress, Int32(clamping: $0.count)))
            }
            guard sent > 0 || sent == -Int(EAGAIN) else { return }
            rest = rest.dropFirst(max(sent, 0))
        }
    }
}

/// A mixed port with somebody for everything.
private final class House {
    let port: MixedPort
    let turnTCP = Watched<[UInt8]>([])
    let turnTLS = Watched<[UInt8]>([])
    let checks = Watched<[[UInt8]]>([])
    let guests = Watched<[Guest]>([])
    private var stops: [() -> Void] = []

    init(
        without left: Set<String> = [], isHTTPSecure: Bool = true,
        _ change: (inout MixedPort.Limits) -> Void = { _ in }
    ) throws {
        let identity = try TLSIdentity.fresh()
        port = try MixedPort(bind: TransportAddress(ip: .loopback, port: 0), identity: identity)
        var routes = MixedPort.Routes()
        routes.isHTTPSecure = isHTTPSecure
        func inbox() -> ConnectionInbox { ConnectionInbox(of: port.localAddress) }
        if !left.contains("turn-tcp") {
            let inbox = inbox()
            let server = try StreamServer(from: .inbox(inbox), name: "t", limits: StreamServerLimits()) {
                [turnTCP] _, _, _ in Keeper(turnTCP)
            }
            routes.turnTCP = inbox
            stops.append { server.stop() }
        }
        if !left.contains("turn-tls") {
            let inbox = inbox()
            let server = try StreamServer(from: .inbox(inbox), name: "s", limits: StreamServerLimits()) {
                [turnTLS] _, _, _ in SecuredConversation(Keeper(turnTLS), as: identity)
            }
            routes.turnTLS = inbox
            stops.append { server.stop() }
        }
        if !left.contains("tcp") {
            let inbox = inbox()
            let listener = try ConnectionListener(from: .inbox(inbox)) { [checks] _, first in
                checks.change { $0.append(first) }
                return false
            }
            routes.iceTCP = inbox
            stops.append { listener.stop() }
        }
        if !left.contains("http") {
            routes.http = { [guests] descriptor, client, isDecrypted in
                let guest = Guest(descriptor, client, isDecrypted)
                guests.change { $0.append(guest) }
            }
        }
        var limits = MixedPort.Limits()
        change(&limits)
        try port.start(routes, limits: limits)
    }

    deinit {
        port.stop()
        for stop in stops { stop() }
    }

    func connect() throws -> RemoteStream { try RemoteStream(to: port.localAddress) }

    /// - Parameter protocols: what it names by ALPN.
    func connect(naming protocols: [String]) throws -> SecureRemote {
        try SecureRemote(to: port.localAddress, protocols: protocols)
    }
}

@Suite(.timeLimit(.minutes(5))) struct `A mixed port` {
    private static let stun: [UInt8] = [0, 3, 0, 0, 0x21, 0x12, 0xA4, 0x42] + [UInt8](0..<12)
    private static let request = Array("GET / HTTP/1.1\r\n\r\n".utf8)

    /// Each byte by itself, or all at once.
    private func say(_ bytes: [UInt8], by remote: RemoteStream, slowly: Bool) {
        if slowly { for byte in bytes { remote.send(raw: [byte]) } } else { remote.send(raw: bytes) }
    }

    @Test(arguments: [false, true])
    func `hands TURN and ICE over TCP on, of which nothing is lost`(slowly: Bool) async throws {
        let house = try House()
        let (turn, ice) = (try house.connect(), try house.connect())
        say(Self.stun, by: turn, slowly: slowly)
        say([0, UInt8(Self.stun.count)] + Self.stun, by: ice, slowly: slowly)
        try await house.turnTCP.wait { $0 == Self.stun }
        #expect(turn.receiveRaw().starts(with: "heard".utf8))
        try await house.checks.wait { $0 == [Self.stun] }
        #expect(ice.waitForClose())
        let counters = house.port.counters
        #expect(counters.turnTCP == 1 && counters.iceTCP == 1 && counters.undecided == 0)
    }

    @Test(arguments: [false, true])
    func `hands TLS on by what it names`(slowly: Bool) async throws {
        let house = try House()
        let (browser, turn) = (
            try house.connect(naming: ["h2", "http/1.1"]), try house.connect(naming: ["stun.turn"])
        )
        let hello = browser.hello()
        say(hello, by: browser.remote, slowly: slowly)
        try await house.guests.wait { $0.count == 1 }
        let guest = try #require(house.guests.value.first)
        #expect(!guest.isDecrypted && guest.client == browser.remote.localAddress)
        #expect(guest.receive(hello.count) == hello)
        say(turn.hello(), by: turn.remote, slowly: slowly)
        #expect(turn.shakeHands())
        turn.send(Self.stun)
        #expect(turn.receive(5) == Array("heard".utf8))
        #expect(house.turnTLS.value == Self.stun)
        let counters = house.port.counters
        #expect(counters.https == 1 && counters.turnTLS == 1 && counters.pipes == 0)
    }

    @Test func `hands text to HTTP`() async throws {
        let house = try House()
        let remote = try house.connect()
        remote.send(raw: Self.request)
        try await house.guests.wait { $0.count == 1 }
        #expect(house.guests.value.first?.receive(Self.request.count) == Self.request)
        #expect(house.port.counters.http == 1)
    }

    @Test func `looks into TLS that names nothing, and leaves TURN to its server`() throws {
        let house = try House()
        for protocols in [[], ["something-else"]] {
            house.turnTLS.change { $0 = [] }
            let remote = try house.connect(naming: protocols)
            #expect(remote.shakeHands())
            remote.send(Self.stun)
            #expect(remote.receive(5) == Array("heard".utf8))
            #expect(house.turnTLS.value == Self.stun)
            // All that follows goes there, too.
            remote.send([9, 9])
            #expect(remote.receive(5) == Array("heard".utf8))
            #expect(house.turnTLS.value == Self.stun + [9, 9])
        }
        #expect(house.port.counters.turnTLS == 2 && house.guests.value.isEmpty)
    }

    @Test func `carries what else comes by TLS that names nothing to HTTP, and back`() async throws {
        let house = try House()
        let remote = try house.connect(naming: [])
        #expect(remote.shakeHands())
        remote.send(Self.request)
        try await house.guests.wait { $0.count == 1 }
        let guest = try #require(house.guests.value.first)
        #expect(guest.isDecrypted && guest.client == remote.remote.localAddress)
        #expect(guest.receive(Self.request.count) == Self.request)
        // More than all the buffers on the way hold.
        let long = (0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        let sender = try NativeThread(name: "sender", cpu: nil) { guest.send(long) }
        #expect(remote.receive(long.count) == long)
        sender.join()
        remote.send([1, 2, 3])
        #expect(guest.receive(3) == [1, 2, 3])
        let counters = house.port.counters
        #expect(counters.pipes == 1 && counters.pipedHTTPS == 1 && counters.undecided == 0)
    }

    @Test func `ends a pipe when either end does`() async throws {
        let house = try House()
        let (one, other) = (try house.connect(naming: []), try house.connect(naming: []))
        for remote in [one, other] {
            #expect(remote.shakeHands())
            remote.send(Self.request)
        }
        try await house.guests.wait { $0.count == 2 }
        let guests = house.guests.value
        let ours = try #require(guests.first { $0.client == one.remote.localAddress })
        let theirs = try #require(guests.first { $0.client == other.remote.localAddress })
        #expect(ours.receive(Self.request.count) == Self.request)
        // The client ends: the server hears it.
        one.remote.endOutput()
        #expect(ours.receive(1).isEmpty)
        // The server ends: what it said before comes, and then the end.
        theirs.send(Array("last".utf8))
        clinux_stream_end(theirs.descriptor)
        #expect(other.receive(5) == Array("last".utf8))
    }

    @Test func `closes and counts what is nothing, or for nobody`() throws {
        let house = try House(without: ["turn-tcp", "tcp"])
        for noise in [[0x80, 1, 2], [0, 5] + Array("noise and more".utf8), [0x16, 3, 1, 0, 0]] as [[UInt8]] {
            let remote = try house.connect()
            remote.send(raw: noise)
            #expect(remote.waitForClose())
        }
        for wanted in [Self.stun, [0, 20] + Self.stun] {
            let remote = try house.connect()
            remote.send(raw: wanted)
            #expect(remote.waitForClose())
        }
        let counters = house.port.counters
        #expect(counters.strange == 3 && counters.unserved == 2 && counters.undecided == 0)
    }

    @Test func `asks nothing of TLS where there is only one for it`() async throws {
        let onlyHTTP = try House(without: ["turn-tls"])
        let browser = try onlyHTTP.connect(naming: [])
        browser.remote.send(raw: browser.hello())
        try await onlyHTTP.guests.wait { $0.count == 1 }
        #expect(onlyHTTP.guests.value.first?.isDecrypted == false)
        let onlyTURN = try House(without: ["http"])
        let turn = try onlyTURN.connect(naming: ["http/1.1"])
        #expect(turn.shakeHands())
        turn.send(Self.stun)
        #expect(turn.receive(5) == Array("heard".utf8))
    }

    @Test func `closes who does not say enough in time`() throws {
        let house = try House { $0.patience = .seconds(1) }
        let (silent, slow, shaken) = (
            try house.connect(), try house.connect(naming: []), try house.connect(naming: [])
        )
        // As much of it as leaves the question open.
        slow.remote.send(raw: Array(slow.hello().dropLast()))
        _ = shaken.shakeHands()
        #expect(silent.waitForClose() && slow.remote.waitForClose())
        #expect(shaken.receive(1).isEmpty)
        let counters = house.port.counters
        #expect(counters.expired == 3 && counters.undecided == 0)
    }

    @Test func `has the oldest go where too many say nothing`() throws {
        let house = try House { $0.undecided = 4 }
        let silent = try (0..<7).map { _ in try house.connect() }
        for remote in silent.prefix(3) { #expect(remote.waitForClose()) }
        silent[6].send(raw: Self.stun)
        #expect(silent[6].receiveRaw().starts(with: "heard".utf8))
        #expect(house.port.counters.displaced == 3)
    }

    @Test func `refuses more of one address`() throws {
        let house = try House {
            $0.undecidedPerAddress = 2
            $0.undecided = 4
        }
        let silent = try (0..<2).map { _ in try house.connect() }
        #expect(try house.connect().waitForClose())
        #expect(house.port.counters.refused == 1)
        // Whose place is free once it is known what they are.
        silent[0].send(raw: Self.stun)
        #expect(silent[0].receiveRaw().starts(with: "heard".utf8))
        let next = try house.connect()
        next.send(raw: Self.stun)
        #expect(next.receiveRaw().starts(with: "heard".utf8))
    }

    @Test func `carries no more to HTTP than it may`() async throws {
        let house = try House { $0.pipes = 1 }
        let (kept, refused) = (try house.connect(naming: []), try house.connect(naming: []))
        #expect(kept.shakeHands())
        kept.send(Self.request)
        try await house.guests.wait { $0.count == 1 }
        #expect(refused.shakeHands())
        refused.send(Self.request)
        #expect(refused.receive(1).isEmpty)
        #expect(house.port.counters.refused == 1 && house.guests.value.count == 1)
    }

    @Test func `closes everything when it stops`() async throws {
        let house = try House()
        let (silent, shaken, piped) = (
            try house.connect(), try house.connect(naming: []), try house.connect(naming: [])
        )
        #expect(shaken.shakeHands() && piped.shakeHands())
        piped.send(Self.request)
        try await house.guests.wait { $0.count == 1 }
        house.port.stop()
        #expect(silent.waitForClose())
        #expect(shaken.receive(1).isEmpty && piped.receive(1).isEmpty)
        let counters = house.port.counters
        #expect(counters.undecided == 0 && counters.pipes == 0)
    }

    /// All connections of an office come this way where its firewall inspects TLS and names no protocol.
    @Test func `lets an office be relayed to HTTP, and leaves most places to others`() {
        let limits = MixedPort.Limits()
        #expect(limits.pipesPerAddress >= 500 && limits.pipesPerAddress * 4 <= limits.pipes)
    }
}
