import Wire

/// Checks an answer against its offer by the rules browsers enforce; knows nothing of how answers are made.
///
/// - Source: RFC 9429 §5.3.1 and §5.11, RFC 9143 §7.3, RFC 8285 §6, RFC 8853 §5.3, RFC 8839 §4.2.
struct JSEPChecker {
    let offer: SessionDescription
    let answer: SessionDescription
    private(set) var violations: [String] = []

    static func violations(of answer: SessionDescription, to offer: SessionDescription) throws -> [String] {
        var checker = JSEPChecker(offer: offer, answer: answer)
        try checker.checkSession()
        for (index, pair) in zip(offer.media, answer.media).enumerated() {
            try checker.checkPair(index, offered: pair.0, answered: pair.1)
        }
        try checker.checkSources()
        try checker.checkExtensionIDs()
        return checker.violations
    }

    private init(offer: SessionDescription, answer: SessionDescription) {
        self.offer = offer
        self.answer = answer
    }

    private mutating func expect(_ isTrue: Bool, _ rule: String) {
        if !isTrue { violations.append(rule) }
    }

    private var accepted: [MediaDescription] { answer.media.filter { $0.port != 0 } }

    private mutating func checkSession() throws {
        expect(offer.media.count == answer.media.count, "the number of m-lines is the offer's")
        expect(answer.isICELite, "a=ice-lite stands at session level")
        expect(
            !answer.has(.extmapAllowMixed) || offer.allowsMixedExtensions
                || offer.media.contains(where: \.allowsMixedExtensions), "extmap-allow-mixed was offered")
        let offered = try offer.groups().first { $0.semantics == "BUNDLE" }?.mids
        let answered = try answer.groups().first { $0.semantics == "BUNDLE" }?.mids
        expect((offered == nil) == (answered == nil), "BUNDLE is answered where it is offered")
        guard let offered, let answered else { return }
        expect(answered == offered.filter(answered.contains), "BUNDLE is a part of the offer's, in its order")
        expect(
            Set(answered) == Set(accepted.map { $0.mid ?? "" }),
            "BUNDLE holds what is accepted, and only that")
        // Deviates from RFC 9143 §7.3.1 for the sake of aiortc.
        let carriers = answer.media.filter { !$0.candidates.isEmpty || $0.isEndOfCandidates }
        expect(carriers.map(\.mid) == answered, "candidates stand in every m-line of the BUNDLE")
        expect(carriers.allSatisfy(\.isEndOfCandidates), "the candidates are complete")
        expect(
            carriers.allSatisfy { $0.candidates == carriers.first?.candidates },
            "all m-lines have the same candidates")
        expect(
            carriers.flatMap(\.candidates).allSatisfy { $0.component == 1 && $0.transportAddress != nil },
            "candidates are addresses for component 1")
    }

    private mutating func checkPair(_ index: Int, offered: MediaDescription, answered: MediaDescription)
        throws
    {
        let line = "m-line \(index): "
        expect(offered.media == answered.media, line + "the kind is the offer's")
        expect(offered.transport == answered.transport, line + "the transport is the offer's")
        expect(offered.mid == answered.mid, line + "the mid is the offer's")
        expect(answered.fields.contains { $0.letter == UInt8(ascii: "c") }, line + "there is a c= line")
        expect(Set(answered.formats).isSubset(of: offered.formats), line + "no format is invented")
        expect(!answered.has(.bundleOnly), line + "bundle-only is for offers")
        guard answered.port != 0 else { return }
        expect(offered.port != 0 || offered.has(.bundleOnly), line + "a rejected m-line stays rejected")
        expect(answered.iceCredentials?.isValid == true, line + "there are ICE credentials")
        expect(try answered.setup() == .passive, line + "the DTLS role is passive")
        expect(try answered.fingerprints().count == 1, line + "there is a fingerprint")
        guard offered.type != .application else {
            expect(try answered.sctpPort() == 5_000, line + "there is an SCTP port")
            expect(try answered.maximumMessageSize() != nil, line + "there is a limit of messages")
            expect(!answered.has(.rtcpMux), line + "RTP's attributes are not for data channels")
            return
        }
        checkDirection(line, offered: offered, answered: answered)
        expect(answered.has(.rtcpMux), line + "rtcp-mux is answered")
        expect(
            !answered.has(.rtcpReducedSize) || offered.has(.rtcpReducedSize), line + "rtcp-rsize was offered")
        try checkFormats(line, offered: offered, answered: answered)
        try checkExtensions(line, offered: offered, answered: answered)
        try checkSimulcast(line, offered: offered, answered: answered)
    }

    private mutating func checkDirection(
        _ line: String, offered: MediaDescription, answered: MediaDescription
    ) {
        let theirs = offered.direction ?? offer.direction ?? .sendrecv
        let ours = answered.direction
        expect(ours != nil, line + "the direction is spelt out")
        expect(ours?.sends != true || theirs.receives, line + "we send only where the client receives")
        expect(ours?.receives != true || theirs.sends, line + "we receive only where the client sends")
        expect((ours?.sends == true) == !answered.all(.ssrc).isEmpty, line + "SSRCs are named where we send")
        expect((ours?.sends == true) == answered.has(.msid), line + "there is an msid where we send")
    }

    private mutating func checkFormats(
        _ line: String, offered: MediaDescription, answered: MediaDescription
    ) throws {
        let maps = try answered.rtpMaps()
        let offeredMaps = try offered.rtpMaps()
        let types = try answered.payloadTypes()
        expect(types.count == answered.formats.count, line + "no payload type is listed twice")
        expect(maps.map(\.payloadType) == types, line + "each payload type has its rtpmap, in order")
        expect(
            maps.allSatisfy(offeredMaps.contains), line + "payload types mean what they meant in the offer")
        expect(maps.contains { !$0.encoding.matchesIgnoringCase("rtx") }, line + "there is a codec")
        let offeredParameters = try offered.formatParameters()
        for parameters in try answered.formatParameters() {
            expect(types.contains(parameters.payloadType), line + "a=fmtp is for a listed payload type")
            guard let repaired = parameters[name: "apt"] else { continue }
            expect(answered.formats.contains(repaired), line + "RTX repairs a listed payload type")
            let before = offeredParameters.first { $0.payloadType == parameters.payloadType }
            expect(before?[name: "apt"] == repaired, line + "RTX repairs what it repaired in the offer")
        }
        let offeredFeedback = try offered.feedback()
        for feedback in try answered.feedback() {
            expect(
                feedback.payloadType.map(types.contains) == true,
                line + "feedback is for a listed payload type")
            let isOffered = offeredFeedback.contains { item in
                item.kind == feedback.kind
                    && (item.payloadType == nil || item.payloadType == feedback.payloadType)
            }
            expect(isOffered, line + "feedback \(feedback.text) was offered")
        }
    }

    private mutating func checkExtensions(
        _ line: String, offered: MediaDescription, answered: MediaDescription
    ) throws {
        let theirs = try offer.extensionMaps() + offered.extensionMaps()
        let ours = try answered.extensionMaps()
        expect(Set(ours.map(\.id)).count == ours.count, line + "extension ids are unique")
        expect(Set(ours.map(\.uri)).count == ours.count, line + "extensions are listed once")
        for map in ours {
            let before = theirs.first { $0.id == map.id && $0.uri == map.uri }
            expect(before != nil, line + "extension \(map.text) was offered")
            expect(
                map.direction == before?.direction?.reversed, line + "extension \(map.text) is turned round")
        }
    }

    private mutating func checkSimulcast(
        _ line: String, offered: MediaDescription, answered: MediaDescription
    ) throws {
        let theirs = try offered.simulcast()?.send.joined().map(\.rid) ?? []
        let simulcast = try answered.simulcast()
        let ours = simulcast?.receive.joined().map(\.rid) ?? []
        expect(simulcast?.send.isEmpty != false, line + "we send no simulcast")
        expect(Set(ours).isSubset(of: theirs), line + "simulcast layers were offered")
        expect(Set(ours).count == ours.count, line + "simulcast layers are listed once")
        let rids = try answered.streamRestrictions()
        expect(rids.map(\.id) == ours, line + "each simulcast layer has its rid")
        expect(rids.allSatisfy { $0.direction == .recv }, line + "rids are received")
    }

    /// Our SSRCs are unique, none is the client's, and each RTX payload type has an SSRC in a FID group.
    private mutating func checkSources() throws {
        var seen = Set<UInt32>()
        for media in offer.media { seen.formUnion(try media.sourceAttributes().map(\.ssrc)) }
        var tracks = Set<String>()
        for media in accepted where media.direction?.sends == true {
            let attributes = try media.sourceAttributes()
            let ssrcs = Set(attributes.map(\.ssrc))
            let hasRepair = try media.rtpMaps().contains { $0.encoding == "rtx" }
            let groups = try media.sourceGroups()
            expect(groups.count == (hasRepair ? 1 : 0), "FID stands where there is RTX")
            expect(ssrcs.count == (hasRepair ? 2 : 1), "each stream has one SSRC")
            expect(groups.allSatisfy { Set($0.ssrcs) == ssrcs }, "FID names the SSRCs")
            expect(seen.isDisjoint(with: ssrcs), "SSRCs are unique")
            seen.formUnion(ssrcs)
            let msid = try media.msids().first
            for ssrc in ssrcs {
                let own = attributes.filter { $0.ssrc == ssrc }
                expect(own.contains { $0.name == "cname" }, "each SSRC has a CNAME")
                expect(own.contains { $0.name == "msid" && $0.value == msid?.text }, "each SSRC has the msid")
            }
            expect(tracks.insert(msid?.track ?? "").inserted, "track ids are unique")
        }
    }

    private mutating func checkExtensionIDs() throws {
        var uris: [UInt16: String] = [:]
        for map in try accepted.flatMap({ try $0.extensionMaps() }) {
            expect(
                uris[map.id] == nil || uris[map.id] == map.uri,
                "extension ids do not conflict within the BUNDLE")
            uris[map.id] = map.uri
        }
    }
}
