import Base
import ClientPeer
import Peer
import TestSupport
import Testing
import Wire

/// Both ends of a negotiation, each with its own reading of the same two descriptions.
private struct Negotiation {
    var offer: ClientOffer
    var server: SessionPlan
    var answer: SessionDescription
    var client: ClientPlan

    static let address = TransportAddress(ip: .loopback, port: 7_000)
    static let fingerprint = SDPFingerprint(algorithm: "sha-256", bytes: Array(repeating: 7, count: 32))

    init(
        _ requests: [ClientOffer.Request], for purpose: SessionOffer.Purpose,
        feedback: ClientOffer.Feedback = .transportWide, policy: NegotiationPolicy = NegotiationPolicy()
    ) throws {
        var random = SeededGenerator(seed: 9_725)
        offer = ClientOffer(
            requests, credentials: ICECredentials(using: &random), fingerprint: Self.fingerprint,
            feedback: feedback, using: &random)
        // What travels is text.
        let received = try SessionOffer(SessionDescription(parsing: offer.description.text), for: purpose)
        let transport = LocalTransport(
            credentials: ICECredentials(using: &random), fingerprint: Self.fingerprint, udp: [Self.address])
        let result = try Negotiator(policy: policy).answer(to: received, as: transport, using: &random)
        server = result.plan
        answer = try SessionDescription(parsing: result.description.text)
        client = try ClientPlan(answer, to: offer)
    }
}

@Suite struct ClientNegotiation {
    @Test func `has dependency descriptors of AV1 in one encoding alone`() throws {
        for (codec, rids, id) in [
            (.av1, [], 12), (.av1, ["h", "l"], nil), (.vp8, [], nil), (.vp9, [], nil), (.h264, [], nil),
        ] as [(MediaCodec.Family, [String], UInt8?)] {
            let both = try Negotiation([.publishVideo(codec, rids: rids)], for: .publish)
            #expect(both.server.publishedExtensions.dependencyDescriptor == id, "\(codec) \(rids)")
            #expect(both.client.lines[0].extensions.dependencyDescriptor == id, "\(codec) \(rids)")
        }
    }

    @Test func `of a publisher agrees with the server`() throws {
        let both = try Negotiation([.publishAudio, .publishVideo(.vp9)], for: .publish)
        #expect(both.client.addresses == [Negotiation.address])
        #expect(both.client.fingerprints == [Negotiation.fingerprint])
        #expect(both.server.fingerprints == [Negotiation.fingerprint])
        #expect(both.server.remoteCredentials == both.offer.credentials)
        #expect(both.client.lines.map(\.direction) == [.sendonly, .sendonly])
        #expect(both.client.lines.map(\.formats) == both.server.sources.map(\.formats))
        #expect(
            both.client.lines[1].formats
                == [MediaFormat(codec: .vp9(profile: 0), payloadType: 98, repairPayloadType: 99)])
        for (line, source) in zip(both.client.lines, both.server.sources) {
            #expect(
                source.announced
                    == line.encodings.map { .init(ssrc: $0.ssrc, repairSSRC: $0.repairSSRC) })
            #expect(line.remote == nil)
        }
        #expect(both.client.lines[1].extensions.transportSequenceNumber == 3)
        #expect(both.server.publishedExtensions.transportSequenceNumber == 3)
        #expect(both.server.publishedExtensions.mid == both.client.lines[0].extensions.mid)
        #expect(both.server.congestionFeedback == .transportWide)
    }

    @Test func `of simulcast keeps every layer, named by RID alone`() throws {
        let both = try Negotiation([.publishAudio, .publishVideo(.vp8, rids: ["h", "m", "l"])], for: .stage)
        #expect(both.server.sources[1].rids == ["h", "m", "l"])
        #expect(both.server.sources[1].announced.isEmpty)
        let video = both.client.lines[1]
        #expect(video.encodings.map(\.rid) == ["h", "m", "l"])
        #expect(Set(video.encodings.flatMap { [$0.ssrc, $0.repairSSRC ?? $0.ssrc] }).count == 6)
        #expect(video.extensions.rtpStreamID == 10)
        #expect(both.server.publishedExtensions.repairedRTPStreamID == video.extensions.repairedRTPStreamID)
    }

    @Test func `of a feed viewer finds the server's streams`() throws {
        let both = try Negotiation([.playAudio, .playVideo, .playAudio, .playVideo], for: .play)
        #expect(both.client.lines.map(\.mid) == both.server.slots.map(\.mid))
        for (line, slot) in zip(both.client.lines, both.server.slots) {
            #expect(line.direction == .recvonly)
            #expect(line.encodings.isEmpty)
            #expect(line.formats == slot.formats)
            #expect(line.extensions == slot.extensions)
            #expect(line.remote?.ssrc == slot.ssrc)
            #expect(line.remote?.repairSSRC == slot.repairSSRC)
            #expect(line.remote?.cname == slot.cname)
        }
        let codecs = both.client.lines[1].formats.map(\.codec)
        #expect(codecs == [.vp8, .h264(packetizationMode: 1), .av1, .vp9(profile: 0)])
        #expect(both.client[mid: "3"]?.remote?.msid?.stream == both.client[mid: "2"]?.remote?.msid?.stream)
    }

    @Test func `of a client that can only estimate`() throws {
        let both = try Negotiation([.publishVideo(.h264)], for: .publish, feedback: .receiverEstimate)
        #expect(both.server.congestionFeedback == .receiverEstimate)
        #expect(both.server.publishedExtensions.absoluteSendTime == 2)
    }

    @Test func `of a codec that the operator forbids is refused`() {
        #expect(throws: SessionOffer.Refusal.noUsableCodec("0")) {
            try Negotiation(
                [.publishVideo(.av1)], for: .publish, policy: NegotiationPolicy(videoCodecs: [.vp8]))
        }
    }

    @Test func `restarts ICE over fragments`() throws {
        var random = SeededGenerator(seed: 8_840)
        let both = try Negotiation([.playAudio, .playVideo], for: .play)
        let current = both.offer.credentials
        let trickle = both.offer.fragment(credentials: current, candidates: [Negotiation.address])
        let update = try ICEUpdate(SDPFragment(parsing: trickle.text), current: current)
        #expect(update == .candidates([ICECandidate(host: Negotiation.address)], isComplete: false))
        let fresh = ICECredentials(using: &random)
        let restart = try SDPFragment(parsing: both.offer.fragment(credentials: fresh).text)
        #expect(try ICEUpdate(restart, current: current) == .restart(fresh))
    }

    @Test func `refuses answers it cannot use`() throws {
        let both = try Negotiation([.playAudio, .playVideo], for: .play)
        func expect(_ problem: ClientPlan.Problem, _ change: (inout SessionDescription) -> Void) {
            var answer = both.answer
            change(&answer)
            #expect(throws: problem) { try ClientPlan(answer, to: both.offer) }
        }
        expect(.mismatch) { $0.media.removeLast() }
        expect(.mismatch) { $0.media.swapAt(0, 1) }
        expect(.rejected) { answer in
            for index in answer.media.indices { answer.media[index].port = 0 }
        }
        expect(.noTransport) { answer in
            for index in answer.media.indices { answer.media[index].removeAll(.candidate) }
        }
        expect(.noTransport) { $0.media[0].removeAll(.icePassword) }
        expect(.noTransport) { $0.media[0].removeAll(.fingerprint) }
        expect(.noRole) { $0.media[0].removeAll(.setup) }
        expect(.noRole) { answer in
            answer.media[0].removeAll(.setup)
            answer.media[0].append(.setup, "actpass")
        }
        expect(.malformed(.invalid(.sdpRTPMap))) { $0.media[1].append(.rtpmap, "96") }
    }
}
