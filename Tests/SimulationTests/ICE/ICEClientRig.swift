import Base
import TestSupport
import Testing
import Wire

@testable import ClientPeer

/// A client with one or two sockets, and a scripted server that answers when told to.
struct ICEClientRig {
    static let client = ICECredentials(ufrag: "clnt", password: Secret("password-of-the-client"))
    static let server = ICECredentials(ufrag: "serv", password: Secret("password-of-the-server"))
    static let restarted = ICECredentials(ufrag: "next", password: Secret("password-after-restart"))
    static let locals = [TransportAddress("10.0.0.1:1000"), TransportAddress("10.0.1.1:1001")].compactMap {
        $0
    }
    static let remote = TransportAddress(ip: IPAddress(ipv4: 0xC000_0201), port: 7_000)

    var agent: ICEControllingAgent
    var random = SeededGenerator(seed: 1)
    let authenticator = SHA1Authenticator()

    init(
        sockets: Int = 1, isControlling: Bool = true, remotes: Int = 1,
        _ change: (inout ICEControllingAgent.Configuration) -> Void = { _ in }
    ) {
        var configuration = ICEControllingAgent.Configuration()
        change(&configuration)
        agent = ICEControllingAgent(
            local: Self.client, remote: Self.server, configuration: configuration,
            isControlling: isControlling, at: .zero, using: &random)
        for (index, local) in Self.locals.prefix(sockets).enumerated() {
            agent.addLocal(.init(host: local, index: UInt16(index)))
        }
        for index in 0..<remotes {
            agent.addRemote(
                .init(
                    host: TransportAddress(ip: Self.remote.ip, port: 7_000 + UInt16(index)),
                    index: UInt16(index)))
        }
    }

    static func time(_ milliseconds: Int64) -> MonotonicTime {
        MonotonicTime(nanoseconds: milliseconds * 1_000_000)
    }

    static func path(_ socket: Int, _ server: UInt16 = 0) -> ICEControllingAgent.Path {
        .init(local: locals[socket], remote: TransportAddress(ip: remote.ip, port: 7_000 + server))
    }

    mutating func advance(to milliseconds: Int64) -> [ICEControllingAgent.Effect] {
        agent.advance(to: Self.time(milliseconds), authenticator: authenticator, using: &random)
    }

    /// The requests among these effects.
    func requests(_ effects: [ICEControllingAgent.Effect]) throws -> [(
        path: ICEControllingAgent.Path, message: ReceivedSTUN
    )] {
        var requests: [(ICEControllingAgent.Path, ReceivedSTUN)] = []
        for case .send(let bytes, let path) in effects { requests.append((path, try ReceivedSTUN(bytes))) }
        return requests
    }

    /// The answer to a request, which `change` may spoil before it is sealed.
    func answer(
        _ request: ReceivedSTUN, kind: STUNKind = .bindingSuccess, key: [UInt8]? = server.key,
        mapped: TransportAddress = locals[0], _ change: (inout STUNWriter) -> Void = { _ in }
    ) -> [UInt8] {
        var writer = STUNWriter(kind, transactionID: request.message.transactionID)
        if kind == .bindingSuccess { writer.appendXORMappedAddress(mapped) }
        change(&writer)
        guard let key else { return writer.sealed() }
        return writer.sealed(key: key, by: authenticator)
    }

    mutating func receive(_ bytes: [UInt8], on path: ICEControllingAgent.Path, at milliseconds: Int64)
        throws(ICEControllingAgent.Refusal) -> [ICEControllingAgent.Effect]
    {
        try agent.receive(
            bytes.span, to: path.local, from: path.remote, at: Self.time(milliseconds),
            authenticator: authenticator, using: &random)
    }

    /// Answers every request in `effects` and in what follows from the answers; returns the other effects.
    mutating func answerAll(_ effects: [ICEControllingAgent.Effect], at milliseconds: Int64) throws
        -> [ICEControllingAgent.Effect]
    {
        var pending = effects
        var others: [ICEControllingAgent.Effect] = []
        while !pending.isEmpty {
            let effect = pending.removeFirst()
            guard case .send(let bytes, let path) = effect else {
                others.append(effect)
                continue
            }
            pending += try receive(answer(try ReceivedSTUN(bytes)), on: path, at: milliseconds)
        }
        return others
    }

    /// A rig that has selected its best path at 0 ms.
    static func connected(sockets: Int = 1, _ nomination: ICEControllingAgent.Nomination = .regular) throws
        -> ICEClientRig
    {
        var rig = ICEClientRig(sockets: sockets) { $0.nomination = nomination }
        let effects = try rig.answerAll(rig.advance(to: 0), at: 0)
        #expect(effects == [.select(path(0))])
        return rig
    }
}
