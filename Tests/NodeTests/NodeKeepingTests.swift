import Base
import Crypto
import Foundation
import Peer
import Stage
import Testing
import Wire

@testable import Node

/// What a node keeps for people and for operators, and how much of it.
@Suite struct `The pictures that hosts chose for pauses` {
    private let folder: String
    private let shelf: PausePictureShelf
    private let streams: [StreamID]

    init() throws {
        folder = FileManager.default.temporaryDirectory.appending(path: "pauses-\(UUID().uuidString)").path
        shelf = PausePictureShelf(directory: folder)
        streams = try ["a", "b", "c"].map { try #require(StreamID($0)) }
    }

    private func clean() { try? FileManager.default.removeItem(atPath: folder) }

    private func load(limit: Int = 100, total: Int = 1_000) async -> [StreamID: [UInt8]] {
        await shelf.load(limit: limit, total: total)
    }

    @Test func `are there after a restart, the latest of each`() async throws {
        defer { clean() }
        #expect(await load() == [:], "there is no folder yet")
        for (number, stream) in streams.enumerated() {
            #expect(await shelf.set([UInt8(number)], of: stream))
        }
        #expect(await shelf.set([9, 9], of: streams[0]))
        #expect(await shelf.set(nil, of: streams[1]))
        #expect(await load() == [streams[0]: [9, 9], streams[2]: [2]])
        shelf.remove(streams[2])
        #expect(await load() == [streams[0]: [9, 9]], "all is done in order")
    }

    @Test func `are read as far as there is room, by their names`() async throws {
        defer { clean() }
        let sizes = [60, 50, 30]
        for (size, stream) in zip(sizes, streams) {
            #expect(await shelf.set([UInt8](repeating: 1, count: size), of: stream))
        }
        func names(limit: Int, total: Int) async -> [String] {
            await load(limit: limit, total: total).keys.map(\.description).sorted()
        }
        #expect(await names(limit: 60, total: 140) == ["a", "b", "c"])
        #expect(await names(limit: 59, total: 140) == ["b", "c"])
        #expect(await names(limit: 60, total: 139) == ["a", "b"])
        #expect(await names(limit: 60, total: 90) == ["a", "c"], "the second finds no room")
        #expect(await names(limit: 60, total: 29) == [])
    }

    /// A draft is what a crash in the middle of a write leaves.
    @Test func `are no drafts, no empty files and nothing of another kind`() async throws {
        defer { clean() }
        #expect(await shelf.set([1], of: streams[0]))
        let others: [(String, [UInt8])] = [(".b.draft", [1, 2]), ("b", []), ("no stream!", [1, 2])]
        for (name, bytes) in others {
            #expect(FileManager.default.createFile(atPath: "\(folder)/\(name)", contents: Data(bytes)))
        }
        try FileManager.default.createDirectory(
            atPath: "\(folder)/c", withIntermediateDirectories: false)
        #expect(await load() == [streams[0]: [1]])
        let left = try FileManager.default.contentsOfDirectory(atPath: folder).sorted()
        #expect(left == ["a", "b", "c", "no stream!"], "drafts are removed, and nothing else")
    }

    @Test func `are not kept where there can be no folder, which is said`() async throws {
        defer { clean() }
        #expect(FileManager.default.createFile(atPath: folder, contents: Data([1])))
        #expect(await shelf.set([1], of: streams[0]) == false)
        #expect(await load() == [:])
    }
}

@Suite struct `The lines of a log that clients could fill` {
    private var rate = LineRate()

    private mutating func admitted(_ count: Int, at milliseconds: Int64) -> Int {
        var admitted = 0
        for _ in 0..<count where rate.admit(at: .zero + .milliseconds(milliseconds)) { admitted += 1 }
        return admitted
    }

    @Test mutating func `are two hundred in any second, and the rest is counted`() {
        var counts: [Int] = []
        let lines: [(Int, Int64)] = [(150, 0), (100, 999), (300, 1_000), (1, 1_001), (1, 9_000)]
        for (count, milliseconds) in lines { counts.append(admitted(count, at: milliseconds)) }
        #expect(counts == [150, 50, 200, 0, 1])
        let omitted = rate.takeOmitted()
        let more = rate.takeOmitted()
        #expect(omitted == 151 && more == 0)
    }
}

@Suite struct `Names that the store does not know` {
    private var absent = AbsentStreams()

    @Test mutating func `are remembered up to so many, the latest half for certain`() throws {
        let half = AbsentStreams.limit / 2
        let names = try (0...2 * half).map { try #require(StreamID("s\($0)")) }
        for name in names.prefix(half) { absent.insert(name) }
        #expect(absent.count == half)
        // Again is not once more.
        absent.insert(names[0])
        #expect(absent.count == half)
        for name in names[half..<2 * half] { absent.insert(name) }
        #expect(absent.count == AbsentStreams.limit && absent.contains(names[0]))
        absent.insert(names[2 * half])
        #expect(absent.count == half + 1 && !absent.contains(names[half - 1]))
        #expect(absent.contains(names[half]) && absent.contains(names[2 * half]))
        for name in [names[half], names[2 * half]] { absent.remove(name) }
        #expect(absent.count == half - 1)
        #expect(!absent.contains(names[half]) && !absent.contains(names[2 * half]))
    }
}

@Suite struct `What operators see of a session` {
    private let show: StreamID
    private let now = Moment(
        elapsed: .zero + .seconds(100), wall: WallTime(milliseconds: 1_800_000_100_000))

    init() throws { show = try #require(StreamID("show")) }

    /// Of a session with this offer, in answer to which the server named a password of its own.
    private func dossier(offer: String, received: MonotonicTime? = nil) throws -> JSON {
        let id = try #require(SessionID(String(repeating: "1", count: 32)))
        let credentials = ICECredentials(ufrag: "u", password: Secret("p"))
        var record = SessionRecord(
            id: id,
            request: SessionRequest(
                purpose: .play, stream: show, sender: HostRig.bob, offer: offer, received: received),
            isStrangers: false, plan: SessionPlan(remoteCredentials: credentials, fingerprints: []),
            worker: 0, entityTag: "u")
        record.created = .zero + .seconds(40)
        record.answer = "v=0\r\na=ice-ufrag:own\r\na=ice-pwd:the-servers-own\r\n"
        return SessionDossier(record: record, ended: nil, now: now)
            .whole(nil, log: SessionLog(), sources: [:], local: [])
    }

    /// Whoever has it could take the session over.
    @Test(arguments: ["\r\n", "\n", "\r"]) func `has no password`(end: String) throws {
        let lines = ["v=0", "a=ice-ufrag:theirs", "a=ice-pwd:secret-of-theirs", "m=audio 9 X 111", ""]
        let json = try dossier(offer: lines.joined(separator: end))
        let shown = ["v=0", "a=ice-ufrag:theirs", "a=ice-pwd:<secret>", "m=audio 9 X 111", ""]
        #expect(json["offer"] == .string(shown.joined(separator: "\n")))
        #expect(json["answer"] == .string("v=0\na=ice-ufrag:own\na=ice-pwd:<secret>\n"))
        #expect(!json.text.contains("secret-of-theirs") && !json.text.contains("the-servers-own"))
    }

    /// Wherever a long offer is cut.
    @Test func `has no part of a password either`() throws {
        for room in 0...40 {
            let start = "v=0\r\n" + String(repeating: "a=x", count: 16_384)
            let padding = String(start.prefix(16_384 - 2 - room))
            let json = try dossier(offer: "\(padding)\r\na=ice-pwd:0123456789abcdef0123456789\r\n")
            guard case .string(let offer) = json["offer"] else {
                Issue.record("there is no offer")
                return
            }
            #expect(!offer.contains("0123") && offer.utf8.count < 16_400, "\(room)")
        }
    }

    @Test func `counts from the request, by the clock of now`() throws {
        let json = try dossier(offer: "", received: .zero + .seconds(39))
        #expect(json["since"] == .time(WallTime(milliseconds: 1_800_000_039_000)))
        #expect(json["phases"]?["answer"] == .number(1) && json["phases"]?["dtls"] == .null)
        #expect(json["state"] == .string("connecting") && json["participant"] == .string("bob"))
        #expect(json["quality"] == nil, "the worker has not answered")
    }
}
