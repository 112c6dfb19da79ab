import Base
import Foundation
import Interaction
import Net
import Stage
import Testing
import Wire

@testable import Ingest
@testable import Node

@Suite struct `What a publisher's encoder sends` {
    private static func formats(sound: AACConfiguration?) -> IngestFormats {
        IngestFormats(video: nil, resolution: nil, audio: sound, conversion: nil)
    }

    private func status(hasSound: Bool) throws -> IngestStatus {
        // AAC-LC, 48 kHz, two channels.
        let bytes: [UInt8] = [0x11, 0x90]
        let sound = try AACConfiguration(parsing: bytes.span)
        let ann = try #require(ParticipantID("ann"))
        return IngestStatus(ann, by: "srt", Self.formats(sound: hasSound ? sound : nil))
    }

    @Test func `is null where it is not sent or not measured`() throws {
        let json = try status(hasSound: false).json
        for member in ["video", "audio", "link"] { #expect(json[member] == .null) }
        #expect(json["participant"] == .string("ann"))
        #expect(json["protocol"] == .string("srt"))
        #expect(json["advice"] == .array([]))
    }

    @Test func `is told with its measurements, to a tenth`() throws {
        var known = try status(hasSound: true)
        known.report.audioBitrate = 128_000
        var link = SRTLink()
        link.roundTrip = 12.375
        link.received = 7
        link.lost = 2
        known.link = link
        let json = known.json
        #expect(json["audio"]?["sampleRate"] == .number(48_000))
        #expect(json["audio"]?["channels"] == .number(2))
        #expect(json["audio"]?["bitrate"] == .number(128_000))
        #expect(json["link"]?["roundTrip"] == .number(12.4))
        #expect(json["link"]?["received"] == .number(7))
        #expect(json["link"]?["lost"] == .number(2))
        #expect(json["video"] == .null)
    }

    @Test func `has each advice once, in the order in which it came`() throws {
        var known = try status(hasSound: true)
        known.note(.soundLeftOut)
        known.note(.cameTooLate(isAudio: false))
        known.note(.soundLeftOut)
        guard case .array(let advice)? = known.json["advice"] else {
            Issue.record("there is no advice")
            return
        }
        let codes = advice.map { $0["code"] }
        let expected: [JSON?] = [
            .string(IngestNotice.soundLeftOut.code), .string(IngestNotice.cameTooLate(isAudio: false).code),
        ]
        #expect(codes == expected)
        // The next report has what still holds.
        known.report = IngestReport()
        #expect(known.json["advice"] == .array([]))
    }
}

@Suite struct `The answer to a member of the audience` {
    private func members(_ refusal: StageRefusal, to command: Interaction.Command) throws -> [String: JSON] {
        let text = AudienceAnswer.text(refusal, to: command)
        return try JSONDecoder().decode([String: JSON].self, from: Data(text.utf8))
    }

    @Test(
        arguments: [
            (.interaction(.slowMode(wait: 7)), "slow-mode", 7),
            // A limit that others may leave again.
            (.interaction(.tooManySilenced), "too-many-silenced", 10),
            (.interaction(.commentsOff), "comments-off", nil),
            (.interaction(.emptyComment), "empty-comment", nil),
            (.rejected(.backstage(startsAt: nil, waiting: 3)), "backstage", 10),
            (.rejected(.banned), "banned", nil),
            (.tooManyCommands(wait: 3), "too-many-commands", 3), (.storage("full"), "storage", 5),
            (.unknownStream, "unknown-stream", nil), (.busy, "under-way", 1), (.overloaded, "overloaded", 5),
        ] as [(StageRefusal, String, Int?)])
    func `says why, and when another attempt may succeed`(
        _ refusal: StageRefusal, rule: String, wait: Int?
    ) throws {
        let answer = try members(refusal, to: .vote(1, options: [0]))
        #expect(answer["type"] == .string("refused"))
        #expect(answer["rule"] == .string(rule))
        let expected: JSON? = wait.map { .integer($0) }
        #expect(answer["wait"] == expected)
        guard case .string(let detail)? = answer["detail"] else {
            Issue.record("there are no words for people")
            return
        }
        #expect(!detail.isEmpty)
        // The disk's own error is for the operator only.
        #expect(!detail.contains("full") || rule == "overloaded")
        #expect(answer["id"] == nil)
    }

    @Test func `names the comment that it is about`() throws {
        let answer = try members(.interaction(.longComment), to: .comment(key: "c-1", text: "x"))
        #expect(answer["id"] == .string("c-1"))
    }

    @Test(arguments: [(1, "1 second"), (2, "2 seconds")])
    func `says the time in words`(wait: Int, words: String) throws {
        let answer = try members(.tooManyCommands(wait: wait), to: .react(["heart": 1]))
        guard case .string(let detail)? = answer["detail"] else {
            Issue.record("there are no words for people")
            return
        }
        #expect(detail.hasSuffix("Try again in \(words)."))
    }
}
