import Base
import Peer
import TestSupport
import Testing
import Wire

@Suite struct SessionPlans {
    @Test func `a plan for Chrome's simulcast offer has its layers`() throws {
        let (plan, _) = try NegotiationFixture.negotiate("chrome-publish-simulcast")
        let offer = try NegotiationFixture.offer("chrome-publish-simulcast")
        #expect(plan.remoteCredentials == offer.media[0].iceCredentials)
        #expect(try plan.fingerprints == offer.media[0].fingerprints())
        #expect(plan.slots.isEmpty)
        #expect(plan.bundledMIDs == ["0", "1"])
        #expect(plan.congestionFeedback == .transportWide)
        #expect(plan.allowsReducedSizeRTCP)
        let audio = plan.sources[0]
        #expect(audio.formats == [MediaFormat(codec: .opus, payloadType: 111, redundancyPayloadType: 63)])
        #expect(audio.announced.map(\.ssrc) == [1_629_157_458])
        let video = plan.sources[1]
        #expect(
            video.formats == [
                MediaFormat(codec: .vp8, payloadType: 96, repairPayloadType: 97),
                MediaFormat(codec: .h264(packetizationMode: 1), payloadType: 102, repairPayloadType: 103),
                MediaFormat(codec: .h264(packetizationMode: 1), payloadType: 108, repairPayloadType: 109),
                MediaFormat(codec: .h264(packetizationMode: 1), payloadType: 116, repairPayloadType: 117),
                MediaFormat(codec: .av1, payloadType: 45, repairPayloadType: 46),
                MediaFormat(codec: .vp9(profile: 0), payloadType: 98, repairPayloadType: 99),
                MediaFormat(codec: .vp9(profile: 2), payloadType: 100, repairPayloadType: 101),
            ])
        #expect(video.rids == ["h", "m", "l"])
        #expect(video.announced.isEmpty)
        #expect(video.supportsNACK && video.supportsPLI && video.supportsFIR)
        var extensions = ExtensionIDs()
        (extensions.audioLevel, extensions.transportSequenceNumber, extensions.mid) = (1, 3, 4)
        (extensions.playoutDelay, extensions.videoOrientation) = (5, 13)
        // Not the dependency descriptor: Chrome would strip VP8's own.
        (extensions.rtpStreamID, extensions.repairedRTPStreamID) = (10, 11)
        #expect(plan.publishedExtensions == extensions)
    }

    /// A publisher that may send VP8, too, would leave out of it what most viewers need.
    @Test func `only publishers that send AV1 and never VP8 get dependency descriptors`() throws {
        let uri = RTPExtensionURI.dependencyDescriptor.rawValue
        let text = try Fixtures.text("Offers/chrome-publish.sdp").replacing(
            "a=extmap:13 urn:3gpp:video-orientation",
            with: "a=extmap:12 \(uri)\r\na=extmap:13 urn:3gpp:video-orientation")
        let types =
            "SAVPF 96 97 102 103 104 107 108 109 114 115 116 117 39 40 45 46 98 99 100 101 118 119 120"
        for (order, id) in [
            (types, nil), ("SAVPF 45 46 98 99 96 97", nil), ("SAVPF 45 46", 12),
            ("SAVPF 45 46 98 99 108 109", 12), ("SAVPF 98 99 45 46", nil), ("SAVPF 108 109", nil),
        ] as [(String, UInt8?)] {
            let offer = text.replacing(types, with: order)
            let (plan, answer) = try NegotiationFixture.negotiate(
                SessionDescription(parsing: offer), NegotiationFixture.purpose(of: "chrome-publish"))
            #expect(plan.publishedExtensions.dependencyDescriptor == id, "\(order)")
            #expect(answer.text.contains(uri) == (id != nil), "\(order)")
        }
    }

    @Test func `only players that mix header forms get dependency descriptors`() throws {
        let uri = RTPExtensionURI.dependencyDescriptor.rawValue
        let text = try Fixtures.text("Offers/chrome-play.sdp").replacing(
            "a=extmap:13 urn:3gpp:video-orientation",
            with: "a=extmap:12 \(uri)\r\na=extmap:13 urn:3gpp:video-orientation")
        for (offer, id) in [(text, 12), (text.replacing("a=extmap-allow-mixed\r\n", with: ""), nil)]
            as [(String, UInt8?)]
        {
            let (plan, _) = try NegotiationFixture.negotiate(
                SessionDescription(parsing: offer), NegotiationFixture.purpose(of: "chrome-play"))
            let slot = try #require(plan.slots.first { $0.kind == .video })
            #expect(slot.extensions.dependencyDescriptor == id)
            #expect(slot.allowsMixedExtensions == (id != nil))
        }
    }

    @Test func `of Chrome's player, which takes earlier sound in later packets`() throws {
        let (plan, answer) = try NegotiationFixture.negotiate("chrome-play")
        let audio = try #require(plan.slots.first { $0.kind == .audio })
        #expect(audio.formats == [MediaFormat(codec: .opus, payloadType: 111, redundancyPayloadType: 63)])
        let section = try #require(answer.media.first { $0.kind == .audio })
        #expect(section.formats == ["111", "63"])
        #expect(try section.rtpMaps().last?.text == "63 red/48000/2")
        #expect(try section.formatParameters().last?.text == "63 111/111")
        // Pictures have no such thing.
        #expect(
            plan.slots.filter { $0.kind == .video }.flatMap(\.formats).allSatisfy {
                $0.redundancyPayloadType == nil
            })
        let (publisher, _) = try NegotiationFixture.negotiate("chrome-sendrecv")
        #expect(publisher.slots.flatMap(\.formats).allSatisfy { $0.redundancyPayloadType == nil })
    }

    /// libwebrtc sends RED only if it stands before Opus in the answer: so whether it does is the client's choice.
    @Test func `of publishers who send earlier sound in later packets, and of those who only could`() throws {
        let opus = MediaFormat(codec: .opus, payloadType: 111, redundancyPayloadType: 63)
        let (plan, answer) = try NegotiationFixture.negotiate("chrome-publish")
        #expect(plan.sources[0].formats == [opus])
        #expect(answer.media[0].formats == ["111", "63"])
        #expect(
            plan.sources.filter { $0.kind == .video }.flatMap(\.formats).allSatisfy {
                $0.redundancyPayloadType == nil
            })
        for name in ["chrome-publish", "chrome-stage", "safari-publish"] {
            let text = try Fixtures.text("Offers/\(name).sdp").replacing(
                "SAVPF 111 63 ", with: "SAVPF 63 111 ")
            let purpose = NegotiationFixture.purpose(of: name)
            let (plan, answer) = try NegotiationFixture.negotiate(SessionDescription(parsing: text), purpose)
            #expect(plan.sources[0].formats == [opus], "\(name)")
            #expect(answer.media[0].formats == ["63", "111"], "\(name)")
            #expect(
                try answer.media[0].rtpMaps().map(\.text) == ["111 opus/48000/2", "63 red/48000/2"], "\(name)"
            )
            #expect(try answer.media[0].formatParameters().last?.text == "63 111/111", "\(name)")
            #expect(!answer.text.contains("a=rtcp-fb:63"), "\(name)")
        }
        let (firefox, _) = try NegotiationFixture.negotiate("firefox-publish")
        #expect(firefox.sources[0].formats.allSatisfy { $0.redundancyPayloadType == nil })
    }

    @Test(arguments: ["63 111/112", "63 112/112", "63 111", "63 111/", "63 /", "63 x/x", "63 111/111/300"])
    func `RED with blocks of several formats is left out`(parameters: String) throws {
        let text = try NegotiationFixture.offer("chrome-play").text.replacing(
            "a=fmtp:63 111/111", with: "a=fmtp:\(parameters)")
        let offer = try SessionDescription(parsing: text)
        for description in offer.media where description.kind == .audio {
            #expect(
                try OfferedFormat.formats(of: description).allSatisfy {
                    $0.format.redundancyPayloadType == nil
                })
        }
    }

    @Test func `of Firefox's feed`() throws {
        let (plan, answer) = try NegotiationFixture.negotiate("firefox-feed")
        #expect(plan.sources.isEmpty)
        #expect(plan.slots.map(\.mid) == ["0", "1", "2", "3"])
        #expect(plan.slots.map(\.kind) == [.audio, .video, .audio, .video])
        #expect(plan.slots.map { $0.repairSSRC != nil } == [false, true, false, true])
        #expect(Set(plan.slots.map(\.cname)).count == 1)
        #expect(
            plan.slots[1].formats == [
                MediaFormat(codec: .vp8, payloadType: 120, repairPayloadType: 124),
                MediaFormat(codec: .vp9(profile: 0), payloadType: 121, repairPayloadType: 125),
                MediaFormat(codec: .av1, payloadType: 99, repairPayloadType: 100),
            ])
        #expect(plan.slots[1].extensions.mid == 3)
        #expect(plan.slots[1].extensions.transportSequenceNumber == 7)
        #expect(plan.slots[1].extensions.playoutDelay == 6)
        #expect(plan.slots[1].extensions.rtpStreamID == nil)
        #expect(plan.slots.allSatisfy { $0.allowsMixedExtensions })
        #expect(plan.publishedExtensions == ExtensionIDs())
        for (slot, media) in zip(plan.slots, answer.media) {
            #expect(try media.sourceAttributes().first?.ssrc == slot.ssrc)
        }
    }

    @Test func `a player's n-th audio and n-th video are in one MediaStream`() throws {
        let (_, feed) = try NegotiationFixture.negotiate("chrome-feed")
        let streams = try feed.media.prefix(4).map { try $0.msids().first?.stream }
        #expect(streams[0] == streams[1])
        #expect(streams[2] == streams[3])
        #expect(streams[0] != streams[2])
        let (_, stage) = try NegotiationFixture.negotiate("chrome-stage")
        let separate = try stage.media[2...5].map { try $0.msids().first?.stream }
        #expect(Set(separate).count == 4)
    }

    @Test func `a stage plan publishes and receives`() throws {
        let (plan, answer) = try NegotiationFixture.negotiate("chrome-stage")
        #expect(plan.sources.map(\.mid) == ["0", "1"])
        #expect(plan.slots.map(\.mid) == ["2", "3", "4", "5"])
        #expect(plan.sources[1].rids == ["h", "m", "l"])
        #expect(
            answer.media.map(\.direction)
                == [.recvonly, .recvonly, .sendonly, .sendonly, .sendonly, .sendonly, nil])
    }

    @Test(arguments: ["chrome-sendrecv", "firefox-sendrecv", "gstreamer-publish"])
    func `a plan for a sendrecv offer follows the purpose`(name: String) throws {
        let (publisher, recvonly) = try NegotiationFixture.negotiate(name, .publish)
        #expect(publisher.sources.count == 2 && publisher.slots.isEmpty)
        #expect(recvonly.media.map(\.direction) == [.recvonly, .recvonly])
        let (player, sendonly) = try NegotiationFixture.negotiate(name, .play)
        #expect(player.sources.isEmpty && player.slots.count == 2)
        #expect(sendonly.media.map(\.direction) == [.sendonly, .sendonly])
        let (both, sendrecv) = try NegotiationFixture.negotiate(name, .stage)
        #expect(both.sources.count == 2 && both.slots.count == 2)
        #expect(sendrecv.media.map(\.direction) == [.sendrecv, .sendrecv])
    }

    @Test(
        arguments: [
            ("chrome-publish", .transportWide, nil), ("firefox-publish", .transportWide, nil),
            ("pion-publish", .transportWide, nil), ("safari-publish", .transportWide, nil),
            ("aiortc-publish", .receiverEstimate, 3), ("obs-publish", .receiverEstimate, nil),
            // It offers transport-cc, but no extension to number packets with.
            ("gstreamer-publish", .none, nil),
        ] as [(String, SessionPlan.CongestionFeedback, UInt8?)])
    func `choose one kind of congestion feedback`(
        name: String, feedback: SessionPlan.CongestionFeedback, sendTime: UInt8?
    ) throws {
        let (plan, answer) = try NegotiationFixture.negotiate(name)
        #expect(plan.congestionFeedback == feedback)
        #expect(plan.publishedExtensions.absoluteSendTime == sendTime)
        #expect((plan.publishedExtensions.transportSequenceNumber != nil) == (feedback == .transportWide))
        #expect(answer.text.contains("transport-cc") == (feedback == .transportWide))
        #expect(answer.text.contains("goog-remb") == (feedback == .receiverEstimate))
    }

    @Test func `pair announced SSRCs with their repair`() throws {
        let (plan, _) = try NegotiationFixture.negotiate("aiortc-publish")
        #expect(plan.sources[0].announced == [.init(ssrc: 3_594_030_650)])
        #expect(plan.sources[1].announced == [.init(ssrc: 2_136_166_527, repairSSRC: 2_546_531_289)])
        #expect(plan.fingerprints.map(\.algorithm) == ["sha-256", "sha-384", "sha-512"])
        #expect(!plan.allowsReducedSizeRTCP)
    }

    @Test func `a plan for OBS takes the transport from the session level`() throws {
        let (plan, _) = try NegotiationFixture.negotiate("obs-publish")
        #expect(plan.remoteCredentials.ufrag == "nxcM")
        #expect(plan.fingerprints.count == 1)
    }

    @Test func `packetization mode 0 is used if there is no other`() throws {
        let offer = try NegotiationFixture.offer(
            "obs-publish", replacing: "packetization-mode=1", with: "packetization-mode=0")
        let (plan, answer) = try NegotiationFixture.negotiate(offer, .publish)
        #expect(plan.sources[1].formats.map(\.codec) == [.h264(packetizationMode: 0)])
        #expect(answer.text.contains("packetization-mode=0;profile-level-id=42e01f"))
    }

    @Test func `leave out an extension whose id differs from the m-lines before`() throws {
        let mid = RTPExtensionURI.mid.rawValue
        let text = try Fixtures.text("Offers/aiortc-publish.sdp")
        let video = try #require(text.firstRange(of: "m=video")).lowerBound
        let changed =
            text[..<video] + text[video...].replacing("a=extmap:1 \(mid)", with: "a=extmap:5 \(mid)")
        let offer = try SessionDescription(parsing: String(changed))
        let (plan, answer) = try NegotiationFixture.negotiate(offer, .publish)
        #expect(plan.publishedExtensions.mid == 1)
        #expect(try answer.media[1].extensionMaps().allSatisfy { $0.uri != mid })
    }

    @Test func `leave out extensions whose ids are not ours to use`() throws {
        let offer = try NegotiationFixture.offer(
            "aiortc-publish", replacing: "a=extmap:3 ", with: "a=extmap:4096 ")
        let (plan, _) = try NegotiationFixture.negotiate(offer, .publish)
        #expect(plan.publishedExtensions.absoluteSendTime == nil)
    }
}
