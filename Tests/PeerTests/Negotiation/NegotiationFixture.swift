import Base
import Peer
import TestSupport
import Wire

/// Offers from the fixtures, and our end of the transport that answers them.
enum NegotiationFixture {
    static let credentials = ICECredentials(ufrag: "rostrum1", password: Secret("0123456789abcdefghijklmn"))

    static let transport = LocalTransport(
        credentials: credentials,
        fingerprint: SDPFingerprint(algorithm: "sha-256", bytes: Array(0..<32)),
        udp: [
            TransportAddress(ip: IPAddress(ipv4: 0xC000_0201), port: 7_000),
            TransportAddress(ip: IPAddress(high: 0x2001_0DB8_0000_0000, low: 1), port: 7_000),
        ])

    static func offer(_ name: String) throws -> SessionDescription {
        try SessionDescription(parsing: Fixtures.text("Offers/\(name).sdp"))
    }

    static func purpose(of name: String) -> SessionOffer.Purpose {
        if name.hasSuffix("play") { return .play }
        if name.hasSuffix("feed") { return .feed }
        return name.hasSuffix("stage") ? .stage : .publish
    }

    static func negotiate(
        _ description: SessionDescription, _ purpose: SessionOffer.Purpose,
        policy: NegotiationPolicy = NegotiationPolicy()
    ) throws -> (plan: SessionPlan, answer: SessionDescription) {
        var random = SeededGenerator(seed: 1)
        let offer = try SessionOffer(description, for: purpose)
        let (plan, answer) = try Negotiator(policy: policy).answer(to: offer, as: transport, using: &random)
        return (plan, answer)
    }

    static func negotiate(
        _ name: String, _ purpose: SessionOffer.Purpose? = nil,
        policy: NegotiationPolicy = NegotiationPolicy()
    ) throws -> (plan: SessionPlan, answer: SessionDescription) {
        try negotiate(offer(name), purpose ?? self.purpose(of: name), policy: policy)
    }

    /// The offer after `change` was made to its text.
    static func offer(
        _ name: String, replacing old: String, with new: String, everywhere: Bool = true
    ) throws -> SessionDescription {
        let text = try Fixtures.text("Offers/\(name).sdp")
        return try SessionDescription(
            parsing: text.replacing(old, with: new, maxReplacements: everywhere ? .max : 1))
    }
}
