import Base
import Forwarding
import Peer
import TestSupport
import Testing
import Wire

@testable import Node

@Suite struct DeliveryMessages {
    private func patch(_ text: String) -> DeliveryPatch? { DeliveryPatch(parsing: DataChannelMessage(text)) }

    @Test func `a delivery message changes only what it names`() throws {
        var preferences = DeliveryPreferences()
        for (text, expected) in [
            (#"{"maxHeight":360}"#, DeliveryPreferences(maximumHeight: 360)),
            (#"{"pin":"low"}"#, DeliveryPreferences(maximumHeight: 360, pin: .low)),
            (
                #"{"audioOnly":true,"maxHeight":null}"#,
                DeliveryPreferences(pin: .low, isAudioOnly: true)
            ),
            ("{}", DeliveryPreferences(pin: .low, isAudioOnly: true)),
            (#"{"pin":null,"audioOnly":null,"more":[1]}"#, DeliveryPreferences()),
        ] {
            preferences = try #require(patch(text)).applied(to: preferences)
            #expect(preferences == expected, "\(text)")
        }
    }

    @Test(arguments: [
        "", "[]", "null", #"{"maxHeight":0}"#, #"{"maxHeight":-1}"#, #"{"maxHeight":16384}"#,
        #"{"maxHeight":1.5}"#, #"{"maxHeight":1e99}"#, #"{"maxHeight":"360"}"#, #"{"maxHeight":true}"#,
        #"{"pin":"best"}"#, #"{"pin":7}"#, #"{"audioOnly":1}"#, #"{"audioOnly":"yes"}"#,
    ])
    func `a delivery message without meaning is refused`(text: String) {
        #expect(patch(text) == nil)
    }

    @Test func `no delivery message traps`() {
        var random = SeededGenerator(seed: 7_127)
        let example = Array(#"{"type":"prefer","maxHeight":360,"pin":"low","audioOnly":false}"#.utf8)
        for _ in 0..<2_000 {
            var bytes = example
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                bytes[Int.random(in: 0..<bytes.count, using: &random)] = .random(in: 0...255, using: &random)
            }
            _ = DeliveryPatch(parsing: .binary(bytes))
        }
        // As deep as a message may be long.
        for depth in [100, 500, 511, 512, 513, 8_000] {
            let nest = String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
            _ = patch(#"{"type":"prefer","more":\#(nest)}"#)
        }
    }

    @Test func `are understood on the control channels of stages and of the feed`() throws {
        let text = DataChannelMessage(#"{"type":"prefer","maxHeight":360}"#)
        let expected = try #require(patch(#"{"maxHeight":360}"#))
        #expect(ControlRequest(parsing: text) == .prefer(expected))
        #expect(FeedControl(parsing: text) == .prefer(expected))
        let faulty = DataChannelMessage(#"{"type":"prefer","maxHeight":"low"}"#)
        #expect(ControlRequest(parsing: faulty) == nil)
        #expect(FeedControl(parsing: faulty) == nil)
    }

    @Test func `the answer says what is served, and why`() {
        let quality = DeliveryQuality(
            estimate: 612_000, roundTrip: .microseconds(48_500), cause: .delay,
            pictures: [
                .init(
                    mid: "1", wanted: .init(rid: "h", width: 1_280, height: 720, bitrate: 1_700_000),
                    served: nil, isPaused: true)
            ])
        #expect(
            DeliveryQuality.json(quality, DeliveryPreferences(pin: .high)).text
                == #"{"cause":"delay","estimate":612000,"pictures":[{"mid":"1","paused":true,"preview":false,"served":null,"#
                + #""wanted":{"bitrate":1700000,"height":720,"rid":"h","width":1280}}],"#
                + #""preferences":{"audioOnly":false,"maxHeight":null,"pin":"high"},"roundTripSeconds":0.0485}"#
        )
        #expect(
            DeliveryQuality.json(nil, DeliveryPreferences()).text
                == #"{"cause":null,"estimate":null,"pictures":[],"#
                + #""preferences":{"audioOnly":false,"maxHeight":null,"pin":null},"roundTripSeconds":null}"#)
    }
}
