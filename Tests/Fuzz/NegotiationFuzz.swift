// Fuzz entry of negotiation: an offer is refused or gets an answer that can be read and matches it line by
// line.
// Seeds: Offers/*.sdp

import Base
import Peer
import TestSupport
import Wire

func fuzzNegotiation(_ bytes: Span<UInt8>) {
    if let fragment = try? SDPFragment(parsing: bytes) {
        _ = try? ICEUpdate(fragment, current: transport.credentials)
    }
    guard let description = try? SessionDescription(parsing: bytes) else { return }
    for purpose in [SessionOffer.Purpose.publish, .play, .feed, .stage, .audience] {
        var random = SeededGenerator(seed: 1)
        guard let offer = try? SessionOffer(description, for: purpose),
            let answer = try? Negotiator().answer(to: offer, as: transport, using: &random)
        else { continue }
        guard let again = try? SessionDescription(parsing: answer.description.text),
            again.media.count == description.media.count
        else { fatalError("an answer that cannot be read, or with other m-lines than the offer") }
    }
}

private let transport = LocalTransport(
    credentials: ICECredentials(ufrag: "rostrum1", password: Secret("0123456789abcdefghijklmn")),
    fingerprint: SDPFingerprint(algorithm: "sha-256", bytes: Array(0..<32)),
    udp: [TransportAddress(ip: IPAddress(ipv4: 0xC000_0201), port: 7_000)])
