import Base
@testable import Peer
import TestSupport
import Testing
import Wire

private typealias Client = ICETestClient

@Suite struct ICERefusals {
    private var client = ICETestClient()

    /// Hands in what must be refused, and gives back why and what is answered.
    private mutating func refuse(
        _ bytes: [UInt8], at milliseconds: Int64 = 0
    ) -> (reason: ICELiteAgent.Refusal.Reason, answer: [UInt8]?)? {
        do throws(ICELiteAgent.Refusal) {
            let effects = try client.receive(bytes, at: milliseconds)
            Issue.record("accepted, with \(effects.count) effects")
            return nil
        } catch {
            #expect(client.agent.addresses.isEmpty)
            return (error.reason, error.answer)
        }
    }

    private func sealed(_ check: STUNWriter, with credentials: ICECredentials = Client.first) -> [UInt8] {
        check.sealed(key: credentials.key, by: SHA1Authenticator())
    }

    /// Reads an error answer to `number`.
    private func error(_ answer: [UInt8]?, isSealed: Bool) throws -> (code: UInt16?, message: ReceivedSTUN) {
        let message = try ReceivedSTUN(try #require(answer))
        #expect(message.message.kind == .bindingError)
        #expect(message.message.transactionID == STUNTransactionID(high: 1, low: 7))
        #expect(message.fingerprint == .right)
        #expect(message.isAuthentic(key: Client.first.key) == isSealed)
        #expect((message.message[.messageIntegrity] != nil) == isSealed)
        return (try message.errorCode()?.number, message)
    }

    @Test mutating func `drop what is not STUN`() throws {
        for length in [0, 1, 19, 20, 60] {
            let refusal = try #require(refuse([UInt8](repeating: 0, count: length)))
            #expect(refusal == (.malformed, nil))
        }
    }

    @Test mutating func `drop what a wrong FINGERPRINT marks as damaged`() throws {
        var bytes = sealed(Client.check())
        bytes[bytes.count - 1] ^= 1
        let refusal = try #require(refuse(bytes))
        #expect(refusal == (.malformed, nil))
    }

    @Test(arguments: [STUNKind.bindingIndication, .bindingSuccess, .bindingError, .init(rawValue: 0x0003)])
    mutating func `drop what is not a Binding request`(kind: STUNKind) throws {
        let refusal = try #require(refuse(sealed(Client.check(kind: kind))))
        #expect(refusal == (.notARequest, nil))
    }

    @Test mutating func `drop checks meant for another session`() throws {
        let refusal = try #require(refuse(sealed(Client.check(with: Client.second), with: Client.second)))
        #expect(refusal == (.unknownUfrag, nil))
    }

    @Test mutating func `answer 400 to a request without USERNAME`() throws {
        var writer = STUNWriter(.bindingRequest, transactionID: .init(high: 1, low: 7))
        writer.append(.priority, Client.high)
        let refusal = try #require(refuse(sealed(writer)))
        #expect(refusal.reason == .badRequest)
        #expect(try error(refusal.answer, isSealed: false).code == 400)
    }

    @Test mutating func `answer 400 to a request without MESSAGE-INTEGRITY`() throws {
        let refusal = try #require(refuse(Client.check().sealed()))
        #expect(refusal.reason == .badRequest)
        #expect(try error(refusal.answer, isSealed: false).code == 400)
    }

    @Test mutating func `answer 401 to a wrong password`() throws {
        let refusal = try #require(refuse(sealed(Client.check(), with: Client.second)))
        #expect(refusal.reason == .unauthenticated)
        #expect(try error(refusal.answer, isSealed: false).code == 401)
    }

    @Test mutating func `answer 420 and the list to attributes that must be understood`() throws {
        let check = Client.check { writer in
            writer.append(STUNAttribute(rawValue: 0x7F01), [1, 2, 3])
            writer.append(STUNAttribute(rawValue: 0xC057), [1, 2, 3, 4])
            writer.append(STUNAttribute(rawValue: 0x0003), [0, 0, 0, 0])
        }
        let refusal = try #require(refuse(sealed(check)))
        #expect(refusal.reason == .unknownAttribute)
        let (code, message) = try error(refusal.answer, isSealed: true)
        #expect(code == 420)
        #expect(try message.unknownAttributes().map(\.rawValue) == [0x7F01, 0x0003])
    }

    @Test mutating func `answer 400 to a check without PRIORITY`() throws {
        let refusal = try #require(refuse(sealed(Client.check(priority: nil))))
        #expect(refusal.reason == .badRequest)
        #expect(try error(refusal.answer, isSealed: true).code == 400)
    }

    @Test mutating func `answer 400 to a check without FINGERPRINT`() throws {
        // The length as it is without FINGERPRINT goes into MESSAGE-INTEGRITY, so only the end is cut off.
        var bytes = Array(sealed(Client.check()).dropLast(8))
        bytes[3] -= 8
        let refusal = try #require(refuse(bytes))
        #expect(refusal.reason == .badRequest)
        #expect(try error(refusal.answer, isSealed: true).code == 400)
    }

    @Test mutating func `answer 487 to a client that wants to be controlled`() throws {
        let check = Client.check { $0.append(.iceControlled, 1 as UInt64) }
        let refusal = try #require(refuse(sealed(check)))
        #expect(refusal.reason == .roleConflict)
        #expect(try error(refusal.answer, isSealed: true).code == 487)
    }

    @Test mutating func `answer strangers five times a second at most`() throws {
        let bytes = sealed(Client.check(), with: Client.second)
        let answers = (0..<100).compactMap { refuse(bytes, at: $0)?.answer }
        #expect(answers.count == ICELiteAgent.answersToStrangers)
        #expect(refuse(bytes, at: 999)?.answer == nil)
        #expect(refuse(bytes, at: 1_000)?.answer != nil)
    }

    @Test mutating func `answer with less than they were asked with`() throws {
        for bytes in [sealed(Client.check(), with: Client.second), Client.check().sealed()] {
            let answer = try #require(refuse(bytes)?.answer)
            #expect(answer.count < bytes.count)
        }
    }

    @Test mutating func `do not keep a session alive`() throws {
        _ = refuse(sealed(Client.check(), with: Client.second), at: 9_999)
        #expect(client.agent.lastConsent == Client.time(0))
        #expect(client.advance(to: 10_000) == [.consentLost])
    }

    @Test mutating func `cover every prefix and every changed bit of a check`() {
        let bytes = sealed(Client.check())
        for length in bytes.indices { _ = refuse(Array(bytes[..<length])) }
        for bit in 0..<(bytes.count * 8) {
            var changed = bytes
            changed[bit / 8] ^= 1 << UInt8(bit % 8)
            _ = refuse(changed)
        }
    }
}
