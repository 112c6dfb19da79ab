import TestSupport
import Testing
import Wire

@Suite struct RecordedOffers {
    @Test func `are all there`() {
        #expect(Fixtures.offerNames.count == 21)
    }

    @Test(arguments: Fixtures.offerNames)
    func `are written as they were read`(name: String) throws {
        let text = try Fixtures.text("Offers/\(name).sdp")
        let offer = try SessionDescription(parsing: text)
        let bare = text.unicodeScalars.filter { $0 != "\r" }
        #expect(String(offer.text.unicodeScalars.filter { $0 != "\r" }) == String(bare))
    }

    @Test(arguments: Fixtures.offerNames)
    func `hold only values we understand`(name: String) throws {
        let offer = try SessionDescription(parsing: Fixtures.text("Offers/\(name).sdp"))
        let bundle = try #require(offer.groups().first { $0.semantics == "BUNDLE" })
        #expect(bundle.mids == offer.media.map { $0.mid ?? "" })
        for media in offer.media {
            #expect(media.candidates.count == media.all(.candidate).count)
            let fingerprints = try offer.fingerprints() + media.fingerprints()
            #expect(!fingerprints.isEmpty || media.has(.bundleOnly))
            guard media.type != .application else {
                #expect(try media.sctpPort() == 5_000)
                continue
            }
            let mapped = try media.rtpMaps().map(\.payloadType)
            // Static payload types may go without a=rtpmap (RFC 3551).
            #expect(try media.payloadTypes().allSatisfy { $0 < 35 || mapped.contains($0) })
            #expect(media.isRTCPMultiplexed)
            for parameters in try media.formatParameters() {
                #expect(mapped.contains(parameters.payloadType))
            }
            for feedback in try media.feedback() where feedback.payloadType != nil {
                #expect(feedback.payloadType.map(mapped.contains) == true)
            }
            #expect(try media.extensionMaps().count == media.all(.extmap).count)
            #expect(try media.sourceGroups().allSatisfy { $0.semantics == "FID" && $0.ssrcs.count == 2 })
        }
    }

    @Test(arguments: Fixtures.offerNames)
    func `cut short anywhere never trap`(name: String) throws {
        let bytes = try Fixtures.bytes("Offers/\(name).sdp")
        for length in stride(from: 0, to: bytes.count, by: 61) {
            guard let offer = try? SessionDescription(parsing: Array(bytes[..<length]).span) else { continue }
            #expect(try SessionDescription(parsing: offer.text) == offer)
        }
    }

    @Test func `of Chrome and Firefox name their simulcast layers`() throws {
        for browser in ["chrome", "firefox"] {
            let offer = try SessionDescription(
                parsing: Fixtures.text("Offers/\(browser)-publish-simulcast.sdp"))
            let video = try #require(offer.media.last)
            #expect(try video.streamRestrictions().map(\.id) == ["h", "m", "l"])
            #expect(try video.simulcast()?.send == [[.init("h")], [.init("m")], [.init("l")]])
        }
    }
}
