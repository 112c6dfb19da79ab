import Base
import Crypto
@testable import TURN
import TestSupport
import Testing
import Wire

private typealias Client = TURNTestClient

@Suite struct TURNAllocating {
    private var client = Client()

    @Test mutating func `tells what credentials it wants`() throws {
        let request = STUNWriter(.allocateRequest, transactionID: STUNTransactionID(high: 0, low: 1))
        let answer = try #require(try client.send(request.sealed()))
        #expect(try answer.errorCode() == .unauthenticated)
        #expect(answer.message.text(.realm, in: answer.bytes.span) == "rostrum")
        #expect(answer.message[.nonce] != nil && answer.fingerprint == .right)
        #expect(!client.agent.hasAllocation)
    }

    @Test mutating func `gives an address for ten minutes`() throws {
        let answer = try #require(try client.allocate())
        #expect(answer.kind == STUNKind.allocateRequest.success)
        #expect(try answer.address(.xorRelayedAddress) == Client.relayed)
        #expect(try answer.xorMappedAddress() == Client.address)
        #expect(try answer.number(.lifetime) == 600)
        #expect(answer.isAuthentic(key: client.key))
        #expect(client.agent.deadline == Client.time(601))
        #expect(client.agent.advance(to: Client.time(600)) == [])
        #expect(client.agent.advance(to: Client.time(601)) == [.release])
        #expect(!client.agent.hasAllocation)
    }

    @Test mutating func `asks for an even port where its client does`() throws {
        let answer = try client.allocate { $0.append(.evenPort, [0]) }
        #expect(answer?.kind == STUNKind.allocateRequest.success)
        #expect(client.wantsEvenPort)
    }

    @Test mutating func `answers a request that is repeated, and refuses a second one`() throws {
        try client.learnNonce()
        let request = client.signed(.allocateRequest) { writer, _ in
            writer.append(.requestedTransport, [17, 0, 0, 0])
        }
        let first = try #require(try client.send(request))
        let again = try #require(try client.send(request))
        #expect(first.bytes == again.bytes && client.releases == 0)
        #expect(try client.allocate()?.errorCode() == .allocationMismatch)
        #expect(client.agent.takeCounters().allocations == 1)
    }

    @Test mutating func `says when there is no room`() throws {
        client.room = nil
        #expect(try client.allocate()?.errorCode() == .quotaReached)
        #expect(!client.agent.hasAllocation)
        #expect(client.agent.takeCounters().refusedQuota == 1)
    }

    @Test mutating func `refuses what it does not do`() throws {
        try client.learnNonce()
        let tcp = client.signed(.allocateRequest) { writer, _ in
            writer.append(.requestedTransport, [6, 0, 0, 0])
        }
        #expect(try client.send(tcp)?.errorCode() == .transportNotSupported)
        let none = client.signed(.allocateRequest) { _, _ in }
        #expect(try client.send(none)?.errorCode() == .badRequest)
        #expect(try client.allocate { $0.append(.evenPort, [0x80]) }?.errorCode() == .insufficientCapacity)
        #expect(try client.allocate { $0.append(.evenPort, []) }?.errorCode() == .badRequest)
        let ipv6 = try client.allocate { $0.append(.requestedAddressFamily, [2, 0, 0, 0]) }
        #expect(try ipv6?.errorCode() == .familyNotSupported)
        // DONT-FRAGMENT.
        let unknown = STUNAttribute(rawValue: 0x001A)
        let answer = try #require(try client.allocate { $0.append(unknown) })
        #expect(try answer.errorCode() == .unknownAttribute)
        #expect(try answer.unknownAttributes() == [unknown])
        #expect(!client.agent.hasAllocation)
    }

    @Test mutating func `lasts as long as it is refreshed, and ends when it is given back`() throws {
        #expect(try client.refresh(600)?.errorCode() == .staleNonce)
        _ = try client.allocate()
        #expect(try client.refresh(36_000, at: 500)?.number(.lifetime) == 600)
        #expect(client.agent.deadline == Client.time(1_100))
        #expect(try client.refresh(0, at: 501)?.number(.lifetime) == 0)
        #expect(client.releases == 1 && !client.agent.hasAllocation)
        #expect(try client.refresh(600, at: 502)?.errorCode() == .allocationMismatch)
    }

    /// What workers may send to the client themselves.
    @Test mutating func `tells its open channels, and until when`() throws {
        #expect(client.agent.openChannels(at: Client.time(1)).isEmpty)
        _ = try client.allocate()
        _ = try client.permit(Client.otherPeer)
        #expect(client.agent.openChannels(at: Client.time(1)).isEmpty)
        _ = try client.bind(0x4001, to: Client.peer)
        let open = client.agent.openChannels(at: Client.time(1))
        // The permission ends first (RFC 8656 §9).
        #expect(open.map(\.peer) == [Client.peer] && open.map(\.number) == [0x4001])
        #expect(open.map(\.end) == [Client.time(301)])
        #expect(client.agent.openChannels(at: Client.time(301)).isEmpty)
        _ = try client.permit(Client.peer, at: 400)
        #expect(client.agent.openChannels(at: Client.time(401)).map(\.end) == [Client.time(601)])
        _ = try client.refresh(600, at: 599)
        #expect(client.agent.openChannels(at: Client.time(600)).map(\.end) == [Client.time(601)])
        #expect(client.agent.openChannels(at: Client.time(601)).isEmpty)
    }

    @Test mutating func `tells where a client is`() throws {
        let request = STUNWriter(.bindingRequest, transactionID: STUNTransactionID(high: 0, low: 1))
        #expect(try client.send(request.sealed())?.xorMappedAddress() == Client.address)
    }
}

@Suite struct TURNCredentialChecks {
    private var client = Client()

    private mutating func expectRefusal() throws {
        #expect(try client.allocate()?.errorCode() == .unauthenticated)
        #expect(!client.agent.hasAllocation)
        #expect(client.agent.takeCounters().refusedCredentials == 1)
    }

    @Test mutating func `refuse a wrong password`() throws {
        client.password = "guess"
        try expectRefusal()
    }

    @Test mutating func `refuse a name that is good no longer`() throws {
        client.username = "\(Client.second):guest"
        try expectRefusal()
    }

    @Test(arguments: ["guest", ":guest", "+9000000:guest", "99999999999999999999999:guest", "9e9:guest"])
    mutating func `refuse a name that was never given out`(name: String) throws {
        client.username = name
        try expectRefusal()
    }

    @Test mutating func `refuse another's realm`() throws {
        client.realm = "elsewhere"
        try expectRefusal()
    }

    @Test mutating func `refuse a nonce of another address, and one that is old`() throws {
        try client.learnNonce()
        let nonce = client.nonce
        var other = Client()
        other.agent = TURNAgent(of: Client.peer, by: Client.policy)
        other.nonce = nonce
        #expect(try other.allocate()?.errorCode() == .staleNonce)
        #expect(try client.allocate(at: 3_700)?.errorCode() == .staleNonce)
        for forged in ["ffffffff" + nonce.dropFirst(8), nonce + "A", "no"] {
            client.nonce = forged
            #expect(try client.allocate()?.errorCode() == .staleNonce)
        }
        #expect(client.agent.takeCounters().refusedCredentials == 4)
    }

    @Test mutating func `want all that they need`() throws {
        var writer = STUNWriter(.allocateRequest, transactionID: STUNTransactionID(high: 0, low: 1))
        writer.appendUsername(client.username)
        let answer = try client.send(writer.sealed(key: client.key, by: Client.authenticator))
        #expect(try answer?.errorCode() == .badRequest)
    }

    @Test mutating func `are of no use to another's allocation`() throws {
        _ = try client.allocate()
        client.username = "\(Client.second + 90):other"
        #expect(try client.refresh(0)?.errorCode() == .wrongCredentials)
        #expect(try client.permit(Client.peer)?.errorCode() == .wrongCredentials)
        #expect(client.agent.hasAllocation)
    }

    /// An identity may begin with any character that is printed, even one that joins the colon before it.
    @Test(
        arguments: [
            ("1800000000:bob", 1_800_000_000), ("1800000000:\u{301}bob", 1_800_000_000), ("7:a:b", 7),
            ("7:", 7), ("1800000000", nil), (":bob", nil), ("-7:bob", nil), ("+7:bob", nil), ("7 :bob", nil),
            ("99999999999999999999:bob", nil),
        ] as [(String, Int?)])
    func `expire at the number that their names begin with`(username: String, second: Int?) {
        let expiry = TURNCredentials.expiry(of: username)
        #expect(expiry == second)
    }

    /// RFC 8489 §9.2.2: MD5 of name, realm and password.
    @Test func `make keys as others do`() {
        let credentials = TURNCredentials(secret: Secret(Client.secret))
        let client = Client()
        #expect(
            credentials.key(of: client.username, realm: "rostrum", by: Client.authenticator) == client.key)
    }

    @Test func `let nobody in where a key cannot be made`() throws {
        struct Approved: TURNAuthenticator {
            func hmacSHA1(key: Span<UInt8>, _ message: Span<UInt8>) -> [UInt8] {
                HMAC.sha1(key: key, message)
            }
            func md5(_ message: Span<UInt8>) -> [UInt8]? { nil }
        }
        var client = Client()
        try client.learnNonce()
        let request = client.signed(.allocateRequest) { writer, _ in
            writer.append(.requestedTransport, [17, 0, 0, 0])
        }
        let effects = client.agent.receive(
            request.span, at: Client.time(1), second: Client.second, by: Approved())
        #expect(!effects.contains(.allocate(isIPv4: true, isEven: false)) && effects.count == 1)
        #expect(client.agent.takeCounters().refusedCredentials == 1)
    }
}

@Suite struct TURNRelaying {
    private var client = Client()

    init() throws {
        _ = try client.allocate()
    }

    @Test mutating func `passes datagrams by indications once it is permitted`() throws {
        try client.indicate([1, 2, 3], to: Client.peer)
        #expect(client.relayed.isEmpty && client.hear([4], from: Client.peer).isEmpty)
        #expect(try client.permit(Client.peer)?.kind == STUNKind.createPermissionRequest.success)
        try client.indicate([1, 2, 3], to: Client.peer)
        #expect(client.relayed.map(\.datagram) == [[1, 2, 3]] && client.relayed.first?.peer == Client.peer)
        let indication = try ReceivedSTUN(client.hear([4, 5, 6, 7, 8], from: Client.peer))
        #expect(indication.kind == .dataIndication)
        #expect(try indication.address(.xorPeerAddress) == Client.peer)
        let data = try #require(indication.message[.data])
        #expect(Array(indication.bytes[data]) == [4, 5, 6, 7, 8])
    }

    @Test mutating func `carries a whole datagram of media in an indication`() throws {
        _ = try client.permit(Client.peer)
        let datagram = (0..<1_200).map { UInt8(truncatingIfNeeded: $0) }
        let indication = try ReceivedSTUN(client.hear(datagram, from: Client.peer))
        #expect(indication.message[.data].map { Array(indication.bytes[$0]) } == datagram)
    }

    @Test mutating func `passes datagrams by channels`() throws {
        #expect(try client.bind(0x4000, to: Client.peer)?.kind == STUNKind.channelBindRequest.success)
        try client.say([1, 2, 3], by: 0x4000)
        #expect(client.relayed.map(\.datagram) == [[1, 2, 3]])
        #expect(client.hear([9, 8, 7], from: Client.peer) == [0x40, 0, 0, 3, 9, 8, 7])
        #expect(client.hear([9, 8, 7], from: Client.peer, isStream: true) == [0x40, 0, 0, 3, 9, 8, 7, 0])
        // Another port of the same address is permitted, and has no channel.
        #expect(try ReceivedSTUN(client.hear([1], from: Client.otherPeer)).kind == .dataIndication)
    }

    @Test mutating func `ends permissions and channels unless they are renewed`() throws {
        _ = try client.permit(Client.peer, at: 1)
        _ = try client.bind(0x4001, to: Client.otherPeer, at: 1)
        #expect(!client.hear([1], from: Client.peer, at: 300).isEmpty)
        #expect(client.hear([1], from: Client.peer, at: 301).isEmpty)
        _ = try client.refresh(600, at: 400)
        _ = try client.permit(Client.peer, at: 400)
        try client.say([1], by: 0x4001, at: 600)
        try client.say([2], by: 0x4001, at: 601)
        #expect(client.relayed.map(\.datagram) == [[1]])
        // The number is free again.
        #expect(
            try client.bind(0x4001, to: Client.peer, at: 602)?.kind == STUNKind.channelBindRequest.success)
    }

    @Test mutating func `is no open relay`() throws {
        #expect(try client.permit(Client.stranger)?.errorCode() == .forbidden)
        #expect(try client.permit(Client.peer, Client.stranger)?.errorCode() == .forbidden)
        #expect(try client.bind(0x4000, to: Client.stranger)?.errorCode() == .forbidden)
        // The address is this server's, the port is not.
        let service = TransportAddress(ip: Client.peer.ip, port: 22)
        #expect(try client.bind(0x4000, to: service)?.errorCode() == .forbidden)
        #expect(client.hear([1], from: Client.peer).isEmpty)
        _ = try client.permit(Client.peer)
        for peer in [Client.stranger, service] {
            try client.indicate([1], to: peer)
            #expect(client.hear([1], from: peer).isEmpty)
        }
        try client.say([1], by: 0x4000)
        try client.say([1], by: 0x4FFF)
        #expect(client.relayed.isEmpty)
        #expect(client.agent.takeCounters().refusedPeers == 11)
    }

    @Test mutating func `knows one peer to a channel and one channel to a peer`() throws {
        _ = try client.bind(0x4000, to: Client.peer)
        #expect(try client.bind(0x4000, to: Client.otherPeer)?.errorCode() == .badRequest)
        #expect(try client.bind(0x4001, to: Client.peer)?.errorCode() == .badRequest)
        #expect(try client.bind(0x4000, to: Client.peer)?.kind == STUNKind.channelBindRequest.success)
        for number: UInt16 in [0x3FFF, 0x7FFF, 0x8000] {
            #expect(try client.bind(number, to: Client.otherPeer)?.errorCode() == .badRequest)
        }
        // As clients of RFC 5766 have it.
        #expect(
            try client.bind(0x7FFE, to: Client.otherPeer)?.kind == STUNKind.channelBindRequest.success)
        let ipv6 = TransportAddress(ip: IPAddress(high: 1, low: 1), port: 7_000)
        #expect(try client.permit(ipv6)?.errorCode() == .peerFamilyMismatch)
    }

    @Test mutating func `lets one client do so much a second`() throws {
        var answers = 0
        let other = TransportAddress(ip: Client.peer.ip, port: 9)
        for _ in 0..<200 { answers += try client.permit(other, at: 5) == nil ? 0 : 1 }
        #expect(answers == Client.policy.requestsPerSecond)
        #expect(try client.permit(other, at: 6) != nil)

        _ = try client.bind(0x4000, to: Client.peer, at: 10)
        let packet = [UInt8](repeating: 1, count: 1_996)
        for _ in 0..<5_000 { try client.say(packet, by: 0x4000, at: 20) }
        #expect(client.relayed.count == Client.policy.bytesPerSecond / 2_000)
    }

    @Test mutating func `relays so many datagrams a second, also empty ones`() throws {
        _ = try client.bind(0x4000, to: Client.peer, at: 10)
        for _ in 0..<20_000 { try client.say([], by: 0x4000, at: 20) }
        #expect(client.relayed.count == Client.policy.messagesPerSecond)
        try client.say([1], by: 0x4000, at: 21)
        #expect(client.relayed.last?.datagram == [1])
    }

    @Test mutating func `says nothing to answers and noise`() throws {
        for length in 0..<40 { #expect(try client.send([UInt8](repeating: 0xFF, count: length)) == nil) }
        let answer = STUNWriter(STUNKind.refreshRequest.success, transactionID: .init(high: 0, low: 0))
        #expect(try client.send(answer.sealed()) == nil)
        var random = SeededGenerator(seed: 8_656)
        for number in 0..<2_000 {
            let length = 4 * Int.random(in: 0...30, using: &random)
            let head: [UInt8] = [0, [3, 4, 8, 9, 0x16].randomElement(using: &random) ?? 3, 0, UInt8(length)]
            let rest = (0..<(12 + length)).map { _ in UInt8.random(in: 0...255, using: &random) }
            _ = try client.send(head + [0x21, 0x12, 0xA4, 0x42] + rest, at: Int64(number / 50))
        }
        #expect(client.relayed.isEmpty)
    }

    @Test mutating func `refuses every beginning of a request`() throws {
        let request = client.signed(.refreshRequest) { writer, _ in writer.append(.lifetime, UInt32(0)) }
        for length in 0..<request.count { #expect(try client.send(Array(request.prefix(length))) == nil) }
        #expect(client.agent.hasAllocation)
        // What is changed on the way is signed no longer.
        for index in [20, 30, request.count - 20] {
            var forged = request
            forged[index] ^= 1
            _ = try? client.send(forged)
        }
        #expect(client.agent.hasAllocation)
    }
}

@Suite struct TURNStreams {
    private func messages(_ stream: [UInt8], pieces: Int) throws -> [[UInt8]] {
        var reader = TURNFrameReader()
        var found: [[UInt8]] = []
        var rest = stream[...]
        while !rest.isEmpty {
            let piece = Array(rest.prefix(pieces))
            rest = rest.dropFirst(pieces)
            try reader.read(piece.span) { message in
                found.append((try? message.bytes(0..<message.count)) ?? [])
            }
        }
        return found
    }

    @Test(arguments: [1, 2, 3, 7, 1_000]) func `are cut into messages, however they come`(pieces: Int) throws
    {
        let request = STUNWriter(.allocateRequest, transactionID: STUNTransactionID(high: 0, low: 1)).sealed()
        let data: [UInt8] = [0x40, 0, 0, 5, 1, 2, 3, 4, 5, 0, 0, 0]
        let empty: [UInt8] = [0x40, 1, 0, 0]
        #expect(
            try messages(request + data + empty + request, pieces: pieces) == [request, data, empty, request])
    }

    @Test(arguments: [
        [0xFF, 0, 0, 0], [0, 1, 0xFF, 0xFC], [0x40, 0, 0x10, 0], [0, 3, 0, 3], [0x80, 0, 0, 0],
    ])
    func `end where they are none, or too long`(start: [UInt8]) {
        #expect(throws: WireError.self) { try messages(start, pieces: 4) }
    }
}
