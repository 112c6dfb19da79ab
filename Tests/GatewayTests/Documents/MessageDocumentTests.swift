import Base
import Forwarding
import HTTP
import Interaction
import Stage
import StoryFeed
import TestSupport
import Testing
import Wire

@testable import Gateway
@testable import Node

/// `asyncapi.json` against what the server says and understands.
@Suite(.timeLimit(.minutes(10))) struct `The document of messages` {
    private let openAPI: JSON
    private let asyncAPI: JSON
    private let check: SchemaCheck

    init() throws {
        let pages = try WebPages.load()
        openAPI = try pages.openAPI.json(JSON.self)
        asyncAPI = try pages.asyncAPI.json(JSON.self)
        check = SchemaCheck(documents: ["openapi.json": openAPI, "asyncapi.json": asyncAPI])
    }

    private enum Speaker: String {
        /// The document is the server's: it sends what it says.
        case server = "send"
        case client = "receive"
    }

    /// Messages of a channel, by what their `type` is.
    private func messages(_ channel: String, by speaker: Speaker) -> [String: JSON] {
        var result: [String: JSON] = [:]
        guard case .object(let operations)? = asyncAPI["operations"] else { return result }
        for operation in operations.values {
            guard operation["action"]?.string == speaker.rawValue,
                operation["channel"]?["$ref"]?.string == "#/channels/\(channel)"
            else { continue }
            for reference in operation["messages"]?.array ?? [] {
                let key = reference["$ref"]?.string?.split(separator: "/").last.map(String.init) ?? ""
                guard
                    asyncAPI["channels"]?[channel]?["messages"]?[key]?["$ref"]?.string
                        == "#/components/messages/\(key)",
                    let message = asyncAPI["components"]?["messages"]?[key],
                    let name = message["name"]?.string
                else {
                    Issue.record("\(channel) has no message \(key)")
                    continue
                }
                result[name] = message
            }
        }
        return result
    }

    private func examples(_ channel: String, by speaker: Speaker) -> [JSON] {
        messages(channel, by: speaker).values.flatMap { $0["examples"]?.array ?? [] }
            .compactMap { $0["payload"] }
    }

    /// Expects that it is described as what the server says on a channel.
    private func expect(_ message: JSON, on channel: String) {
        let name = message["type"]?.string ?? message["message_type"]?.string ?? ""
        guard let schema = messages(channel, by: .server)[name]?["payload"] else {
            Issue.record("\(channel) does not know \(message.text)")
            return
        }
        let faults = check.faults(of: message, as: schema, in: "asyncapi.json")
        #expect(faults.isEmpty, "\(channel) \(name): \(faults), \(message.text)")
    }

    @Test func `is served, and says what it is`() async throws {
        let response = await (try Bench()).ask(.get, "/v1/asyncapi.json")
        #expect(response.status == 200 && response.headers["content-type"] == "application/json")
        #expect(try response.json(JSON.self)["asyncapi"] == .string("3.0.0"))
    }

    @Test func `names each message, and no other`() {
        func expect(_ channel: String, _ speaker: Speaker, _ names: [String]) {
            #expect(messages(channel, by: speaker).keys.sorted() == names.sorted(), "\(channel)")
        }
        // Which only shows that the client is there.
        let heartbeat = "heartbeat"
        expect("stream", .server, SyncNotice.allCases.map(\.rawValue))
        expect(
            "stream", .client,
            SyncMessage.Kind.allCases.map(\.rawValue) + AudienceMessage.Kind.allCases.map(\.rawValue)
                + [TokenMessage.kind, heartbeat])
        expect("feed", .server, FeedSyncNotice.allCases.map(\.rawValue))
        expect("feed", .client, [FeedNews.kind, TokenMessage.kind, heartbeat])
        expect("stageControl", .server, ControlReply.Kind.allCases.map(\.rawValue))
        expect("stageControl", .client, ControlRequest.Kind.allCases.map(\.rawValue))
        let shared: [ControlReply.Kind] = [.pong, .gate, .quality, .error]
        expect(
            "feedControl", .server,
            FeedNotice.Kind.allCases.map(\.rawValue) + shared.map(\.rawValue))
        expect(
            "feedControl", .client,
            FeedControl.Kind.allCases.map(\.rawValue) + FeedMessage.Kind.allCases.map(\.rawValue))
        guard case .object(let channels)? = asyncAPI["channels"] else {
            Issue.record("no channels")
            return
        }
        #expect(channels.keys.sorted() == ["feed", "feedControl", "stageControl", "stream"])
    }

    @Test func `has an example of each message that fits`() {
        guard case .object(let messages)? = asyncAPI["components"]?["messages"] else {
            Issue.record("no messages")
            return
        }
        for (key, message) in messages {
            let examples = message["examples"]?.array ?? []
            #expect(!examples.isEmpty, "\(key)")
            for example in examples {
                let faults = check.faults(
                    of: example["payload"] ?? .null, as: message["payload"] ?? .null, in: "asyncapi.json")
                #expect(faults.isEmpty, "\(key): \(faults)")
            }
        }
    }

    @Test func `has examples that the server understands`() throws {
        for example in examples("stream", by: .client) {
            let text = example.text
            let isUnderstood =
                SyncMessage(parsing: text) != nil || TokenMessage(.text(text)) != nil
                || example["type"]?.string == "heartbeat"
            #expect(isUnderstood, "\(text)")
        }
        for example in examples("feed", by: .client) {
            let message = WebSocketMessage.text(example.text)
            let isUnderstood =
                FeedNews(message) != nil || TokenMessage(message) != nil
                || example["type"]?.string == "heartbeat"
            #expect(isUnderstood, "\(example.text)")
        }
        for example in examples("stageControl", by: .client) {
            #expect(ControlRequest(parsing: .string(example.bytes)) != nil, "\(example.text)")
        }
        for example in examples("feedControl", by: .client) {
            #expect(FeedControl(parsing: .string(example.bytes)) != nil, "\(example.text)")
        }
    }

    @Test func `is told on control channels by the rules of problem documents`() throws {
        let refusals: [StageRefusal] = [
            .interaction(.tooFast(wait: 3)), .interaction(.commentsOff), .interaction(.pollFull),
            .rejected(.banned), .rejected(.ended), .unknownStream, .overloaded, .storage("full"),
            .tooManyCommands(wait: 9), .busy, .keyReused, .streamExists, .rejected(.tooManyHands),
            .rejected(.backstage(startsAt: nil, waiting: 3)), .rejected(.linkRevoked),
        ]
        for refusal in refusals {
            for command in [Interaction.Command.comment(key: "c-1", text: "x"), .vote(1, options: [0])] {
                let text = AudienceAnswer.text(refusal, to: command)
                #expect(text == SyncAnswer.text(refusal.problem, to: command), "as on the socket")
                for channel in ["stream", "stageControl"] {
                    expect(try HTTPResponse(status: 200, body: Array(text.utf8)).json(JSON.self), on: channel)
                }
            }
        }
        let voted = try #require(AudienceAnswer.text(.done, to: .vote(1, options: [0, 2])))
        expect(try HTTPResponse(status: 200, body: Array(voted.utf8)).json(JSON.self), on: "stageControl")
        #expect(AudienceAnswer.text(.counted(3), to: .react(["heart": 3])) == nil)
    }

    // MARK: What the server says

    private func stream(_ name: String) throws -> StreamID { try #require(StreamID(name)) }

    @Test func `describes all that is said on the feed's control channels`() throws {
        let (talk, quiz) = (try stream("talk"), try stream("quiz"))
        let everything = FeedReader(scope: .all, sender: nil, standing: .all)
        let viewer = FeedViewer.named(try #require(ParticipantID("bob")))
        let place = FeedPlace(viewer: viewer, reader: everything, mids: [("0", "1"), ("2", "3")])
        let notices: [FeedNotice] = [
            .slots([]), .slots([], request: .max),
            .slots([
                FeedNotice.SlotState(slot: .first, stream: talk, quality: .full),
                FeedNotice.SlotState(slot: .second, stream: quiz, quality: .preview),
            ]),
            .begun(.second, quiz, timestamp: .max), .moved(from: talk, to: quiz, .ended),
            .moved(from: talk, to: quiz, .notPermitted), .empty, .replaced,
            .refused(.release, nil, .noFocus), .refused(.peek, talk, .notLive),
            .refused(.peek, talk, .notPermitted), .refused(.focus, talk, .heldElsewhere),
            .refused(.focus, talk, .tooManyMessages), .refused(.focus, talk, .noSession),
            .refused(.focus, talk, .full), .refused(.focus, talk, .notLive, request: 0),
        ]
        for notice in notices { expect(notice.json(place), on: "feedControl") }
        let seen = Set(notices.compactMap { $0.json(place)["type"]?.string })
        #expect(seen == Set(FeedNotice.Kind.allCases.map(\.rawValue)))
    }

    @Test func `describes all that is said on control channels`() throws {
        var slot = ControlReply.Slot(mid: "0", kind: .video, muted: false, screen: false)
        var replies = [ControlReply(type: .slots, slots: [slot])]
        (slot.stream, slot.participant, slot.name) = ("talk", "ann", "Ann")
        replies.append(ControlReply(type: .slots, slots: [slot]))
        (slot.participant, slot.participants) = (nil, ["ann", "bob"])
        replies.append(ControlReply(type: .slots, slots: [slot]))
        replies += [
            ControlReply(type: .pong), ControlReply(type: .wanted, mid: "1", rids: ["f"]),
            ControlReply(messageType: .mute, target: "bob", kind: .video, by: "ann"),
            .error("malformed", "The server doesn't know this message."),
        ]
        for reply in replies {
            expect(try HTTPResponse(status: 200, body: reply.bytes).json(JSON.self), on: "stageControl")
        }
        let layer = DeliveryQuality.Layer(rid: nil, width: 1_280, height: 720, bitrate: 1_500_000)
        let picture = DeliveryQuality.Picture(mid: "1", wanted: layer, served: layer, isPaused: false)
        let qualities = [
            DeliveryQuality(estimate: nil, roundTrip: nil, cause: nil, pictures: []),
            DeliveryQuality(
                estimate: 1, roundTrip: .milliseconds(31), cause: .delay,
                pictures: [
                    picture, DeliveryQuality.Picture(mid: "2", wanted: nil, served: nil, isPaused: true),
                ]),
        ]
        for quality in qualities {
            var json = DeliveryQuality.json(quality, DeliveryPreferences(maximumHeight: 360, pin: .low))
            json["type"] = .string(ControlReply.Kind.quality.rawValue)
            for channel in ["stageControl", "feedControl"] { expect(json, on: channel) }
        }
    }
}
