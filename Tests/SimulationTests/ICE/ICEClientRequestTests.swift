import Base
import TestSupport
import Testing
import Wire

@testable import ClientPeer

private typealias Rig = ICEClientRig

/// A server that is a full agent checks too.
@Suite struct ICEClientAnswersToChecks {
    /// A check of the server's, which `change` may spoil before it is sealed.
    private func check(
        of rig: ICEClientRig, user: String = "clnt:serv", key: [UInt8] = Rig.client.key,
        _ change: (inout STUNWriter) -> Void = { _ in }
    ) -> [UInt8] {
        var random = SeededGenerator(seed: 9)
        var writer = STUNWriter(.bindingRequest, transactionID: STUNTransactionID(using: &random))
        writer.appendUsername(user)
        writer.append(.priority, UInt32(0x6EFF_FFFF))
        change(&writer)
        return writer.sealed(key: key, by: rig.authenticator)
    }

    private func answer(_ rig: ICEClientRig, _ bytes: [UInt8]) throws -> (
        path: ICEControllingAgent.Path, message: ReceivedSTUN
    ) {
        let effect = try rig.agent.answer(
            bytes.span, to: Rig.locals[0], from: Rig.remote, authenticator: rig.authenticator)
        return try #require(try rig.requests([effect]).first)
    }

    @Test func `tell the server its address, the way the check came`() throws {
        let rig = Rig()
        let (path, message) = try answer(rig, check(of: rig) { $0.append(.iceControlled, UInt64(7)) })
        #expect(path == Rig.path(0))
        #expect(message.message.kind == .bindingSuccess)
        #expect(message.isAuthentic(key: Rig.client.key))
        #expect(message.fingerprint == .right)
    }

    @Test func `leave the choice of the pair to whoever made the offer`() throws {
        let rig = Rig()
        let (_, message) = try answer(rig, check(of: rig) { $0.append(.iceControlling, UInt64.max) })
        #expect(message.message.kind == .bindingError)
        #expect(message.isAuthentic(key: Rig.client.key))
    }

    @Test func `are given to nobody else`() throws {
        let rig = Rig()
        for bytes in [
            check(of: rig, user: "other:serv"), check(of: rig, key: Rig.server.key),
            Array(check(of: rig).dropLast()), [0, 1, 0, 0],
        ] {
            #expect(throws: ICEControllingAgent.Refusal.self) {
                try rig.agent.answer(
                    bytes.span, to: Rig.locals[0], from: Rig.remote, authenticator: rig.authenticator)
            }
        }
    }
}
