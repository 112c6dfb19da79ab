import Base
@testable import Peer
import TestSupport
import Testing
import Wire

/// Writes the checks a browser would, answers the agent's own, and drives it with both.
struct ICETestClient {
    static let first = ICECredentials(ufrag: "srv1AAAA", password: Secret("first-password-of-the-server"))
    static let second = ICECredentials(ufrag: "srv2BBBB", password: Secret("second-password-of-the-server"))
    static let third = ICECredentials(ufrag: "srv3CCCC", password: Secret("third-password-of-the-server"))

    /// Priorities of host, server-reflexive and relayed candidates, as checks carry them.
    static let high: UInt32 = 0x6E7F_FFFF
    static let low: UInt32 = 0x1000_0000

    /// The client's own, and those of its restart.
    static let own = ICECredentials(ufrag: "client", password: Secret("password-of-the-client"))
    static let ownRestarted = ICECredentials(
        ufrag: "clien2", password: Secret("second-password-of-the-client"))

    var agent: ICELiteAgent
    /// Whether the client is at the address of its checks, and answers there at once.
    var answersRequests = true
    /// The agent's, in the order they came.
    private(set) var requests: [(message: ReceivedSTUN, destination: TransportAddress)] = []
    private var number: UInt64 = 0
    private var random = SeededGenerator(seed: 8_445)

    /// - Parameter hasHandshake: whether DTLS is done, through several addresses: from then on each is asked.
    init(_ configuration: ICELiteAgent.Configuration = .init(), hasHandshake: Bool = true) {
        agent = ICELiteAgent(
            credentials: Self.first, remote: Self.own, configuration: configuration, at: Self.time(0))
        if hasHandshake { _ = agent.noteHandshake(through: nil, at: Self.time(0)) }
    }

    static func time(_ milliseconds: Int64) -> MonotonicTime {
        MonotonicTime(nanoseconds: milliseconds * 1_000_000)
    }

    /// An address that differs by its port.
    static func address(_ port: UInt16) -> TransportAddress {
        TransportAddress(ip: IPAddress(ipv4: 0xC000_0201), port: port)
    }

    /// A valid check, which `change` may spoil before it is sealed.
    static func check(
        priority: UInt32? = high, nominates: Bool = false, with credentials: ICECredentials = first,
        kind: STUNKind = .bindingRequest, number: UInt64 = 7, _ change: (inout STUNWriter) -> Void = { _ in }
    ) -> STUNWriter {
        var writer = STUNWriter(kind, transactionID: STUNTransactionID(high: 1, low: number))
        writer.appendUsername(credentials.ufrag + ":client")
        writer.append(.iceControlling, 0x0102_0304_0506_0708 as UInt64)
        if let priority { writer.append(.priority, priority) }
        if nominates { writer.append(.useCandidate) }
        change(&writer)
        return writer
    }

    /// Hands bytes to the agent.
    mutating func receive(_ bytes: [UInt8], from port: UInt16 = 1, at milliseconds: Int64 = 0)
        throws(ICELiteAgent.Refusal) -> [ICELiteAgent.Effect]
    {
        let effects = try agent.receive(
            bytes.span, from: Self.address(port), at: Self.time(milliseconds),
            authenticator: SHA1Authenticator(), using: &random)
        return try answer(effects, at: milliseconds)
    }

    /// An authentic packet comes from a port that was not checked.
    mutating func stray(from port: UInt16, at milliseconds: Int64) throws -> [ICELiteAgent.Effect] {
        let effects = agent.noteStray(
            from: Self.address(port), at: Self.time(milliseconds), authenticator: SHA1Authenticator(),
            using: &random)
        return try answer(effects, at: milliseconds)
    }

    /// Takes the agent's requests out, and answers them.
    private mutating func answer(
        _ effects: [ICELiteAgent.Effect], at milliseconds: Int64
    ) throws(ICELiteAgent.Refusal) -> [ICELiteAgent.Effect] {
        var others: [ICELiteAgent.Effect] = []
        var answers: [ICELiteAgent.Effect] = []
        for effect in effects {
            guard case .send(let bytes, let destination) = effect, let request = try? ReceivedSTUN(bytes),
                request.message.kind == .bindingRequest
            else {
                others.append(effect)
                continue
            }
            requests.append((request, destination))
            guard answersRequests else { continue }
            let isRestarted = request.username?.hasPrefix(Self.ownRestarted.ufrag) == true
            answers += try receive(
                Self.answer(to: request, with: isRestarted ? Self.ownRestarted : Self.own),
                from: destination.port, at: milliseconds)
        }
        return others + answers
    }

    /// The answer to a request of the agent's, which `change` may spoil before it is sealed.
    static func answer(
        to request: ReceivedSTUN, kind: STUNKind = .bindingSuccess, with credentials: ICECredentials = own,
        _ change: (inout STUNWriter) -> Void = { _ in }
    ) -> [UInt8] {
        var writer = STUNWriter(kind, transactionID: request.message.transactionID)
        writer.appendXORMappedAddress(address(7_000))
        change(&writer)
        return writer.sealed(key: credentials.key, by: SHA1Authenticator())
    }

    /// Sends a valid check; returns the effects other than the answer, which is checked here.
    mutating func effectsOfCheck(
        from port: UInt16, priority: UInt32 = high, nominates: Bool = true,
        with credentials: ICECredentials = first, at milliseconds: Int64
    ) throws -> [ICELiteAgent.Effect] {
        number += 1
        let bytes = Self.check(
            priority: priority, nominates: nominates, with: credentials, number: number
        ).sealed(key: credentials.key, by: SHA1Authenticator())
        var effects = try receive(bytes, from: port, at: milliseconds)
        guard case .send(let answer, let destination) = effects.removeFirst() else {
            Issue.record("a valid check was not answered first")
            return effects
        }
        let received = try ReceivedSTUN(answer)
        #expect(destination == Self.address(port))
        #expect(received.message.kind == .bindingSuccess)
        #expect(received.message.transactionID.low == number)
        #expect(
            received.message.attributes.map(\.type) == [.xorMappedAddress, .messageIntegrity, .fingerprint])
        #expect(try received.xorMappedAddress() == destination)
        #expect(received.isAuthentic(key: credentials.key))
        #expect(received.fingerprint == .right)
        return effects
    }

    /// The same without the admission of the check's address, which is checked here too.
    mutating func check(
        from port: UInt16, priority: UInt32 = high, nominates: Bool = true,
        with credentials: ICECredentials = first, at milliseconds: Int64
    ) throws -> [ICELiteAgent.Effect] {
        let effects = try effectsOfCheck(
            from: port, priority: priority, nominates: nominates, with: credentials, at: milliseconds)
        let admission = ICELiteAgent.Effect.admit(Self.address(port))
        #expect(effects.contains(admission))
        return effects.filter { $0 != admission }
    }

    mutating func traffic(from port: UInt16, at milliseconds: Int64) -> ICELiteAgent.Effect? {
        agent.noteTraffic(from: Self.address(port), at: Self.time(milliseconds))
    }

    mutating func advance(to milliseconds: Int64) -> [ICELiteAgent.Effect] {
        let effects = agent.advance(
            to: Self.time(milliseconds), authenticator: SHA1Authenticator(), using: &random)
        return (try? answer(effects, at: milliseconds)) ?? effects
    }

    /// Begins an ICE restart on both sides.
    mutating func restart(with credentials: ICECredentials) -> [ICELiteAgent.Effect] {
        agent.restart(with: credentials, remote: Self.ownRestarted)
    }
}
