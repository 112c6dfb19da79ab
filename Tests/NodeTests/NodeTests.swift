import Base
import Crypto
import Forwarding
import Foundation
import Peer
import Stage
import TestSupport
import Testing
import Wire

@testable import Node

/// A node on a free port, which ends with the test.
private func withNode(
    _ change: (inout NodeConfiguration) -> Void = { _ in }, _ body: (Node) async throws -> Void
) async throws {
    var configuration = NodeConfiguration(udp: TransportAddress(ip: .loopback, port: 0))
    // No client ever connects, and a busy machine takes its time.
    configuration.connectTimeout = .seconds(3_600)
    change(&configuration)
    let node = try Node(configuration: configuration, log: .silent)
    await node.start()
    do {
        try await body(node)
    } catch {
        await node.stop()
        throw error
    }
    await node.stop()
}

@Suite struct NodeSessions {
    private let show: StreamID

    init() throws {
        show = try #require(StreamID("show"))
    }

    private func request(
        _ purpose: SessionRequest.Purpose, patience: Duration? = nil, offer: String? = nil,
        isAnonymous: Bool = false, from address: IPAddress? = nil
    ) throws -> SessionRequest {
        let name = purpose == .publish ? "chrome-publish" : "chrome-play"
        return SessionRequest(
            purpose: purpose, stream: show,
            sender: isAnonymous ? nil : ParticipantID("ann").map { Stage.Sender(id: $0, authority: .host) },
            offer: try offer ?? Fixtures.text("Offers/\(name).sdp"), patience: patience,
            clientAddress: address)
    }

    @Test func `are answered with an address and an entity tag`() async throws {
        try await withNode { node in
            let session = try await node.createSession(request(.publish))
            let answer = try SessionDescription(parsing: session.answer)
            let candidates = answer.media.prefix(1).flatMap(\.candidates).compactMap(\.transportAddress)
            #expect(candidates == node.addresses)
            #expect(await node.entityTag(of: session.id) == session.entityTag)
            #expect(await node.endSession(session.id))
            #expect(await node.entityTag(of: session.id) == nil)
            #expect(await !node.endSession(session.id))
        }
    }

    @Test(arguments: 1...3) func `have a TCP address too, which ranks below`(workers: Int) async throws {
        try await withNode { configuration in
            configuration.workers = workers
            configuration.tcp = TransportAddress(ip: .loopback, port: 0)
        } _: { node in
            let address = try #require(node.tcpAddress)
            #expect(address.transport == .tcp)
            for worker in 0..<workers {
                let session = try await node.createSession(request(.publish))
                let answer = try SessionDescription(parsing: session.answer)
                let candidates = answer.media.prefix(1).flatMap(\.candidates)
                #expect(candidates.compactMap(\.transportAddress) == [node.addresses[worker], address])
                #expect(candidates.last?.tcpType == .passive)
                #expect(candidates[0].priority > candidates[1].priority)
                #expect(WorkerTag.worker(ofUfrag: session.entityTag) == worker)
            }
        }
    }

    @Test func `are told apart by their worker`() {
        for worker in 0..<256 {
            #expect(WorkerTag.worker(ofUfrag: WorkerTag.text(worker) + "Ab12") == worker)
        }
        for ufrag in ["", "1", "+1ab", "-0ab", "zzab", "é1ab"] {
            #expect(WorkerTag.worker(ofUfrag: ufrag) == nil)
        }
    }

    @Test func `of viewers need a publisher, or patience`() async throws {
        try await withNode { node in
            await #expect(throws: SessionRefusal.noPublisher) {
                _ = try await node.createSession(request(.play))
            }
            let waiting = try await node.createSession(request(.play, patience: .seconds(30)))
            #expect(await node.streamSnapshot(show)?.state == .waiting)
            #expect(await node.session(waiting.id)?.purpose == .play)
        }
    }

    @Test func `that wait are ended when their patience is`() async throws {
        try await withNode { node in
            let waiting = try await node.createSession(request(.play, patience: .zero))
            await node.keepHouse()
            #expect(await node.session(waiting.id) == nil)
        }
    }

    @Test func `wait by the clock that the node was given`() async throws {
        let clock = Shared(Moment(elapsed: .zero, wall: WallTime(milliseconds: 1_800_000_000_000)))
        let node = try Node(
            configuration: NodeConfiguration(udp: TransportAddress(ip: .loopback, port: 0)), log: .silent,
            now: { clock.value })
        let waiting = try await node.createSession(request(.play, patience: .seconds(30)))
        for (seconds, isThere) in [(29, true), (30, false)] {
            let time = MonotonicTime.zero + .seconds(seconds)
            clock.change { $0 = Moment(elapsed: time, wall: $0.wall) }
            await node.keepHouse()
            #expect((await node.session(waiting.id) != nil) == isThere)
        }
        await node.stop()
    }

    @Test func `that publish are not forgotten before their media comes`() async throws {
        try await withNode { node in
            let session = try await node.createSession(request(.publish))
            await node.keepHouse()
            await node.take(.mediaStarted(session.id))
            #expect(await node.streamSnapshot(show)?.state == .live)
            #expect(await node.endSession(session.id))
            #expect(await node.streamSnapshot(show)?.state == .ended)
        }
    }

    @Test func `are refused beyond the limit`() async throws {
        try await withNode({ $0.sessionLimit = 1 }) { node in
            _ = try await node.createSession(request(.publish))
            await #expect(throws: SessionRefusal.overloaded) {
                _ = try await node.createSession(request(.publish))
            }
        }
    }

    @Test func `of strangers leave places to holders of a token, and to those who publish`() async throws {
        try await withNode({ $0.sessionLimit = 10 }) { node in
            for _ in 0..<8 {
                _ = try await node.createSession(
                    request(.play, patience: .seconds(3_600), isAnonymous: true))
            }
            await #expect(throws: SessionRefusal.overloaded) {
                _ = try await node.createSession(
                    request(.play, patience: .seconds(3_600), isAnonymous: true))
            }
            _ = try await node.createSession(request(.play, patience: .seconds(3_600)))
            await #expect(throws: SessionRefusal.overloaded) {
                _ = try await node.createSession(request(.play, patience: .seconds(3_600)))
            }
            _ = try await node.createSession(request(.publish))
            await #expect(throws: SessionRefusal.overloaded) {
                _ = try await node.createSession(request(.publish))
            }
        }
    }

    /// The one that has waited longest goes first: who is there sends a check within a moment.
    @Test func `of one address that nobody uses make room for each other`() async throws {
        try await withNode { node in
            let (own, other) = (IPAddress(ipv4: 0xC633_6401), IPAddress(ipv4: 0xC633_6402))
            func ask(from address: IPAddress) async throws -> SessionID {
                try await node.createSession(
                    request(.play, patience: .seconds(3_600), isAnonymous: true, from: address)
                ).id
            }
            let elsewhere = try await ask(from: other)
            let used = try await ask(from: own)
            await node.take(.checked(used))
            var unused: [SessionID] = []
            for _ in 0..<(HalfOpenSessions.unchecked.ofSubscriber + 2) {
                unused.append(try await ask(from: own))
            }
            #expect(await node.session(elsewhere) != nil)
            #expect(await node.session(used) != nil)
            for (place, id) in unused.enumerated() {
                #expect(await (node.session(id) != nil) == (place >= 2))
            }
        }
    }

    private func viewer(of node: Node, from address: String) async throws -> SessionID {
        let address = try #require(IPAddress(address))
        return try await node.createSession(
            request(.play, patience: .seconds(3_600), isAnonymous: true, from: address)
        ).id
    }

    private func living(_ ids: [SessionID], in node: Node) async -> [Int] {
        var places: [Int] = []
        for (place, id) in ids.enumerated() where await node.session(id) != nil { places.append(place) }
        return places
    }

    /// A check is one packet, and what it takes to send it stands in the answer.
    @Test func `of one address that never finish a handshake make room for each other`() async throws {
        try await withNode { node in
            let elsewhere = try await viewer(of: node, from: "198.51.100.2")
            await node.take(.checked(elsewhere))
            let watching = try await viewer(of: node, from: "198.51.100.1")
            await node.take(.checked(watching))
            await node.take(.connected(watching, .aeadAES128GCM, nil))
            let count = HalfOpenSessions.checked.ofSubscriber + 5
            var ids: [SessionID] = []
            for _ in 0..<count {
                ids.append(try await viewer(of: node, from: "198.51.100.1"))
                await node.take(.checked(ids[ids.count - 1]))
            }
            #expect(await living(ids, in: node) == Array(5..<count))
            #expect(await node.session(elsewhere) != nil)
            #expect(await node.session(watching) != nil)
        }
    }

    @Test func `of strangers do not take all places for one address`() async throws {
        try await withNode({ $0.sessionLimitForAddress = 5 }) { node in
            var ids: [SessionID] = []
            for _ in 0..<5 {
                ids.append(try await viewer(of: node, from: "198.51.100.1"))
                await node.take(.checked(ids[ids.count - 1]))
                await node.take(.connected(ids[ids.count - 1], .aeadAES128GCM, nil))
            }
            await #expect(throws: SessionRefusal.tooManySessions) {
                _ = try await viewer(of: node, from: "198.51.100.1")
            }
            #expect(await living(ids, in: node).count == 5)
            // Who has a token is known, and who is elsewhere is somebody else.
            _ = try await node.createSession(
                request(.play, patience: .seconds(3_600), from: IPAddress("198.51.100.1")))
            _ = try await viewer(of: node, from: "198.51.100.2")
            #expect(await node.endSession(ids[0]))
            _ = try await viewer(of: node, from: "198.51.100.1")
            // Nobody knows who is behind a loopback address.
            for _ in 0..<10 { _ = try await viewer(of: node, from: "127.0.0.1") }
        }
    }

    /// It takes long to read offers that are written for that.
    @Test func `that nothing would come of are refused before their offer is read`() async throws {
        try await withNode { node in
            await #expect(throws: SessionRefusal.noPublisher) {
                _ = try await node.createSession(request(.play, offer: "hello"))
            }
        }
        try await withNode({ $0.createsStreamsOnPublish = false }) { node in
            await #expect(throws: SessionRefusal.stage(.unknownStream)) {
                _ = try await node.createSession(
                    request(.play, patience: .seconds(3_600), offer: "hello", isAnonymous: true))
            }
        }
    }

    @Test(arguments: ["", "v=0\r\n", "hello", String(repeating: "a=x\r\n", count: 20_000)])
    func `are refused to what is no offer`(offer: String) async throws {
        try await withNode { node in
            do {
                _ = try await node.createSession(request(.publish, offer: offer))
                Issue.record("an offer of \(offer.count) characters was taken")
            } catch SessionRefusal.malformedOffer(let reason) {
                #expect(!reason.isEmpty)
            }
        }
    }

    @Test func `restart ICE under new credentials`() async throws {
        try await withNode { node in
            let session = try await node.createSession(request(.publish))
            let fragment = "a=ice-ufrag:newnew\r\na=ice-pwd:0123456789012345678901\r\n"
            let (reply, tag) = try await node.restartICE(session.id, fragment: fragment)
            #expect(tag != session.entityTag)
            #expect(reply.contains("a=ice-ufrag:\(tag)"))
            #expect(await node.entityTag(of: session.id) == tag)
            await #expect(throws: SessionRefusal.self) {
                try await node.trickle(session.id, fragment: "a=ice-ufrag:x\r\n")
            }
        }
    }

    @Test(arguments: [false, true])
    func `are spread over the workers`(hasPortPerWorker: Bool) async throws {
        let change: (inout NodeConfiguration) -> Void = {
            $0.workers = 2
            $0.hasPortPerWorker = hasPortPerWorker
        }
        try await withNode(change) { node in
            var ports: Set<UInt16> = []
            var workers: Set<Int> = []
            for _ in 0..<2 {
                let session = try await node.createSession(request(.play, patience: .seconds(3_600)))
                let answer = try SessionDescription(parsing: session.answer)
                ports.formUnion(answer.media.prefix(1).flatMap(\.candidates).map(\.port))
                let ufrag = answer.media.first?.iceCredentials?.ufrag ?? ""
                workers.formUnion(WorkerTag.worker(ofUfrag: ufrag).map { [$0] } ?? [])
            }
            #expect(ports == Set(node.addresses.map(\.port)) && ports.count == (hasPortPerWorker ? 2 : 1))
            #expect(workers == [0, 1])
        }
    }

    @Test func `cannot be had where the port is taken`() async throws {
        try await withNode { node in
            let taken = try #require(node.addresses.first)
            #expect(throws: (any Error).self) {
                _ = try Node(configuration: NodeConfiguration(udp: taken), log: .silent)
            }
        }
    }
}

@Suite struct `Pictures of streams` {
    /// Who opens a backstage, with the camera on, is not to be seen before they go live.
    @Test func `are taken once these are live`() async throws {
        let (show, ann) = (try #require(StreamID("show")), try #require(ParticipantID("ann")))
        let host = Stage.Sender(id: ann, authority: .host)
        try await withNode { node in
            _ = try await node.createStream(
                Node.StreamCreation(id: show, host: ann, hostName: nil, edit: StageEdit()))
            let session = try await node.createSession(
                SessionRequest(
                    purpose: .publish, stream: show, sender: host,
                    offer: try Fixtures.text("Offers/chrome-publish.sdp")))
            await node.take(.mediaStarted(session.id))
            await node.takeFeedNews()
            #expect(await node.streamSnapshot(show)?.state == .backstage)
            #expect(await node.live.pictureSource(of: show) == nil)
            _ = try await node.perform(.goLive, in: show, from: host)
            await node.takeFeedNews()
            #expect(await node.live.pictureSource(of: show)?.session == session.id)
        }
    }
}

@Suite struct `What viewers get of a stream` {
    /// Nobody takes what waits here, because the node is not started.
    @Test func `is told of where it may have become another, and only there`() async throws {
        let (show, ann) = (try #require(StreamID("show")), try #require(ParticipantID("ann")))
        let node = try Node(
            configuration: NodeConfiguration(udp: TransportAddress(ip: .loopback, port: 0)), log: .silent)
        func told() -> [StreamID] {
            let streams = node.inboxes.programmes.takeAll().map(\.stream)
            #expect(node.inboxes.recorded.takeAll().map(\.stream) == streams)
            return streams
        }
        let session = try await node.createSession(
            SessionRequest(
                purpose: .publish, stream: show, sender: Stage.Sender(id: ann, authority: .host),
                offer: try Fixtures.text("Offers/chrome-publish.sdp")))
        #expect(told().isEmpty)
        await node.take(.mediaStarted(session.id))
        #expect(told() == [show])
        await node.takeFeedNews()
        #expect(told() == [show])
        await node.perform(.showMute(of: ann, audio: false, video: true), in: show)
        #expect(told() == [show])
        await node.keepHouse()
        await node.advanceStages()
        #expect(told().isEmpty)
        #expect(await node.endSession(session.id))
        #expect(told() == [show])
        await node.stop()
    }
}

@Suite struct `A worker's processor` {
    @Test(arguments: [(0, 2), (1, 5), (2, 2), (7, 5)])
    func `is one of those that the process may use`(worker: Int, processor: Int) {
        #expect(WorkerHandle.processor(of: worker, among: [2, 5]) == processor)
    }

    @Test func `is left open where they are not known`() {
        #expect(WorkerHandle.processor(of: 0, among: []) == nil)
    }
}
