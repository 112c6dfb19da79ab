import Base
import ClientPeer
import Crypto
import Peer
import TestSupport
import Testing
import Wire

/// An offer of a client, and the answer of a server that the test may change.
private struct Exchange {
    let offer: ClientOffer
    var answer: SessionDescription

    static let address = TransportAddress(ip: .loopback, port: 7_000)
    static let fingerprint = SDPFingerprint(algorithm: "sha-256", bytes: Array(repeating: 7, count: 32))

    init(_ requests: [ClientOffer.Request], for purpose: SessionOffer.Purpose) throws {
        var random = SeededGenerator(seed: 3_264)
        offer = ClientOffer(
            requests, credentials: ICECredentials(using: &random), fingerprint: Self.fingerprint,
            using: &random)
        let received = try SessionOffer(SessionDescription(parsing: offer.description.text), for: purpose)
        let transport = LocalTransport(
            credentials: ICECredentials(using: &random), fingerprint: Self.fingerprint, udp: [Self.address])
        let result = try Negotiator(policy: NegotiationPolicy()).answer(
            to: received, as: transport, using: &random)
        answer = try SessionDescription(parsing: result.description.text)
    }

    /// The client's reading of the answer, which travels as text.
    func plan() throws -> ClientPlan {
        try ClientPlan(try SessionDescription(parsing: answer.text), to: offer)
    }
}

@Suite struct `An answer to a client` {
    private static let layered: [ClientOffer.Request] = [
        .publishAudio, .publishVideo(.vp8, rids: ["h", "m", "l"]),
    ]

    @Test func `may name each address several times, in any order`() throws {
        var exchange = try Exchange([.playAudio, .playVideo], for: .play)
        let hosts = (0..<5).map { index in
            ICECandidate(
                host: TransportAddress(ip: .loopback, port: 7_000 + UInt16(index)), index: index)
        }
        for index in exchange.answer.media.indices { exchange.answer.media[index].removeAll(.candidate) }
        for index in [3, 0, 4, 3, 1, 2] { exchange.answer.media[0].append(.candidate, hosts[index].text) }
        for index in [1, 4] { exchange.answer.media[1].append(.candidate, hosts[index].text) }
        let plan = try exchange.plan()
        #expect(plan.candidates == hosts)
        #expect(plan.addresses.map(\.port) == [7_000, 7_001, 7_002, 7_003, 7_004])
    }

    @Test func `names no more addresses than a client could check`() throws {
        var exchange = try Exchange([.playAudio], for: .play)
        for index in 0..<100 {
            let host = ICECandidate(
                host: TransportAddress(ip: .loopback, port: 8_000 + UInt16(index)), index: index + 1)
            exchange.answer.media[0].append(.candidate, host.text)
        }
        let plan = try exchange.plan()
        #expect(plan.candidates.count == 64 && plan.addresses.first == Exchange.address)
    }

    @Test(arguments: [
        "9 1 tcp 100 127.0.0.1 7001 typ host tcptype passive", "9 2 udp 100 127.0.0.1 7001 typ host",
        "9 1 udp 100 3f0c7a5e.local 7001 typ host",
    ])
    func `names what is no address for media by UDP`(text: String) throws {
        var exchange = try Exchange([.playAudio], for: .play)
        exchange.answer.media[0].append(.candidate, text)
        let plan = try exchange.plan()
        #expect(plan.candidates.count == 2 && plan.addresses == [Exchange.address])
    }

    @Test func `may say for the whole session what holds for each of its lines`() throws {
        var exchange = try Exchange([.playAudio, .playVideo], for: .play)
        let whole = try exchange.plan()
        for name in [SDPAttribute.Name.iceUfrag, .icePassword, .fingerprint, .setup] {
            let value = try #require(exchange.answer.media[0].first(name))
            exchange.answer.append(name, value)
            for index in exchange.answer.media.indices { exchange.answer.media[index].removeAll(name) }
        }
        #expect(try exchange.plan() == whole)
    }

    @Test(arguments: [("passive", DTLSRole.client), ("active", .server)])
    func `decides who begins the handshake`(setup: String, role: DTLSRole) throws {
        var exchange = try Exchange([.playAudio], for: .play)
        exchange.answer.media[0].removeAll(.setup)
        exchange.answer.media[0].append(.setup, setup)
        #expect(try exchange.plan().dtlsRole == role)
    }

    @Test func `may reject lines, and leaves the others as they are`() throws {
        var exchange = try Exchange([.playAudio, .playVideo, .playAudio, .playVideo], for: .play)
        let all = try exchange.plan().lines
        exchange.answer.media[0].port = 0
        exchange.answer.media[3].port = 0
        let plan = try exchange.plan()
        #expect(plan.lines == [all[1], all[2]])
        #expect(plan[mid: "0"] == nil && plan[mid: "1"] == all[1] && plan[mid: "7"] == nil)
    }

    @Test func `of a rejected line is not looked at`() throws {
        var exchange = try Exchange([.playAudio, .playVideo], for: .play)
        exchange.answer.media[1].port = 0
        exchange.answer.media[1].append(.rtpmap, "96")
        #expect(try exchange.plan().lines.map(\.mid) == ["0"])
    }

    @Test(
        arguments: [("recv h;l", ["h", "l"]), ("recv m,h", ["h", "m"]), ("recv ~l", ["l"]), ("recv x", [])]
            as [(String, [String])])
    func `chooses layers among those that were offered`(accepted: String, rids: [String]) throws {
        var exchange = try Exchange(Self.layered, for: .stage)
        let offered = exchange.offer.lines[1].encodings
        exchange.answer.media[1].removeAll(.simulcast)
        exchange.answer.media[1].append(.simulcast, accepted)
        let encodings = try exchange.plan().lines[1].encodings
        #expect(encodings == offered.filter { rids.contains($0.rid ?? "") })
    }

    @Test func `without simulcast accepts no layer, but a stream without layers`() throws {
        var exchange = try Exchange(Self.layered, for: .stage)
        exchange.answer.media[1].removeAll(.simulcast)
        #expect(try exchange.plan().lines[1].encodings.isEmpty)
        let plain = try Exchange([.publishVideo(.vp8)], for: .publish)
        #expect(try plain.plan().lines[0].encodings == plain.offer.lines[0].encodings)
    }

    @Test func `may have extensions and groups that a client does not know`() throws {
        var exchange = try Exchange([.playAudio, .playVideo], for: .play)
        let plan = try exchange.plan()
        exchange.answer.media[1].append(.extmap, "14 urn:example:unknown")
        exchange.answer.media[1].append(.ssrcGroup, "SIM 1 2 3")
        exchange.answer.media[1].append(.ssrcGroup, "FID 1 2 3")
        #expect(try exchange.plan() == plan)
    }

    @Test func `without a group has a stream that is not repaired`() throws {
        var exchange = try Exchange([.playVideo], for: .play)
        let before = try #require(try exchange.plan().lines[0].remote)
        exchange.answer.media[0].removeAll(.ssrcGroup)
        let remote = try #require(try exchange.plan().lines[0].remote)
        #expect(remote.ssrc == before.ssrc && remote.repairSSRC == nil && remote.cname == before.cname)
        exchange.answer.media[0].removeAll(.ssrc)
        #expect(try exchange.plan().lines[0].remote == nil)
    }

    @Test func `that changes the kind or the name of a line fits no offer`() throws {
        for change in [
            { $0.media[0].media = "video" }, { $0.media[0].removeAll(.mid) },
            { answer in
                answer.media[0].removeAll(.mid)
                answer.media[0].append(.mid, "9")
            },
        ] as [(inout SessionDescription) -> Void] {
            var exchange = try Exchange([.playAudio], for: .play)
            change(&exchange.answer)
            let (answer, offer) = (exchange.answer, exchange.offer)
            #expect(throws: ClientPlan.Problem.mismatch) { try ClientPlan(answer, to: offer) }
        }
    }

    @Test func `with credentials that are too short has no transport`() throws {
        var exchange = try Exchange([.playAudio], for: .play)
        exchange.answer.media[0].removeAll(.icePassword)
        exchange.answer.media[0].append(.icePassword, "tooshort")
        let (answer, offer) = (exchange.answer, exchange.offer)
        #expect(throws: ClientPlan.Problem.noTransport) { try ClientPlan(answer, to: offer) }
    }
}

@Suite struct `The offer of a client` {
    private static let all: [[ClientOffer.Request]] = [
        [.publishAudio], [.publishVideo(.h264)], [.publishVideo(.av1, rids: ["h", "l"])],
        [.playAudio, .playVideo, .dataChannels], [.dataChannels],
        [.publishAudio, .publishVideo(.vp8, rids: ["h", "m", "l"]), .playAudio, .playVideo, .dataChannels],
    ]

    private func makeOffer(
        _ requests: [ClientOffer.Request], feedback: ClientOffer.Feedback = .transportWide, seed: UInt64 = 1
    ) -> ClientOffer {
        var random = SeededGenerator(seed: seed)
        return ClientOffer(
            requests, credentials: ICECredentials(using: &random), fingerprint: Exchange.fingerprint,
            candidates: [Exchange.address], feedback: feedback, using: &random)
    }

    @Test(arguments: all) func `says the same as text`(requests: [ClientOffer.Request]) throws {
        for feedback in [ClientOffer.Feedback.transportWide, .receiverEstimate, .congestionControl] {
            let offer = makeOffer(requests, feedback: feedback)
            #expect(try SessionDescription(parsing: offer.description.text) == offer.description)
        }
    }

    @Test(arguments: all) func `has a line for each request, all of one transport`(
        requests: [ClientOffer.Request]
    ) throws {
        let offer = makeOffer(requests)
        let media = offer.description.media
        #expect(media.compactMap(\.mid) == requests.indices.map { String($0) })
        #expect(offer.lines.map(\.mid) == requests.indices.map { String($0) })
        #expect(media.allSatisfy { $0.iceCredentials == offer.credentials })
        // The first line of a bundle has the candidates of all.
        #expect(media.map(\.candidates.count) == requests.indices.map { $0 == 0 ? 1 : 0 })
        let encodings = offer.lines.flatMap(\.encodings)
        let ssrcs = encodings.map(\.ssrc) + encodings.compactMap(\.repairSSRC)
        #expect(Set(ssrcs).count == ssrcs.count && !ssrcs.contains(0))
    }

    @Test(arguments: all) func `announces what it sends by SSRC or by RID, never by both`(
        requests: [ClientOffer.Request]
    ) throws {
        let offer = makeOffer(requests)
        for (line, section) in zip(offer.lines, offer.description.media) {
            let announced = Set(try section.sourceAttributes().map(\.ssrc))
            let rids = line.encodings.compactMap(\.rid)
            let own = line.encodings.map(\.ssrc) + line.encodings.compactMap(\.repairSSRC)
            #expect(announced == (rids.isEmpty ? Set(own) : []))
            let layers = try section.simulcast()?.send.joined().map(\.rid) ?? []
            #expect(layers == rids)
            #expect(section.has(.msid) == (line.direction == .sendonly))
        }
    }

    @Test func `differs from the next one`() {
        let (first, second) = (makeOffer([.publishAudio], seed: 1), makeOffer([.publishAudio], seed: 2))
        #expect(first.credentials != second.credentials)
        #expect(first.lines[0].encodings[0].ssrc != second.lines[0].encodings[0].ssrc)
        #expect(first.description.origin != second.description.origin)
    }

    @Test func `asks for one kind of feedback`() throws {
        for (feedback, kind) in [
            (.transportWide, "transport-cc"), (.receiverEstimate, "goog-remb"),
            (.congestionControl, "ack ccfb"),
        ] as [(ClientOffer.Feedback, String)] {
            let section = makeOffer([.playVideo], feedback: feedback).description.media[0]
            let kinds = Set(try section.feedback().map(\.kind))
            #expect(kinds.intersection(["transport-cc", "goog-remb", "ack ccfb"]) == [kind])
            let maps = try section.extensionMaps().filter {
                $0.uri == RTPExtensionURI.transportSequenceNumber.rawValue
            }
            #expect(maps.count == (feedback == .transportWide ? 1 : 0))
        }
    }

    @Test func `without lines has nothing to trickle`() {
        let empty = makeOffer([])
        let fragment = empty.fragment(credentials: empty.credentials, candidates: [Exchange.address])
        #expect(fragment.media.isEmpty && fragment.allCandidates.isEmpty)
    }
}
