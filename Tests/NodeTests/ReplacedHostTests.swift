import Base
import Crypto
import Forwarding
import Peer
import Stage
import Store
import StoryFeed
import TestSupport
import Testing
import Wire

@testable import Node

/// The store has another version of a stream than its host, which closes for that.
@Suite(.timeLimit(.minutes(10))) struct `A host that comes in place of one that has closed` {
    private let store = SlowStore()
    private let node: Node
    private let show: StreamID

    init() throws {
        show = try #require(StreamID("show"))
        var configuration = NodeConfiguration(udp: TransportAddress(ip: .loopback, port: 0))
        configuration.connectTimeout = .seconds(3_600)
        node = try Node(configuration: configuration, log: .silent, store: store)
    }

    private func connect(
        _ purpose: SessionRequest.Purpose, as sender: Stage.Sender?, _ fixture: String
    ) async throws -> SessionID {
        let request = SessionRequest(
            purpose: purpose, stream: show, sender: sender, offer: try Fixtures.text("Offers/\(fixture).sdp"))
        let id = try await node.createSession(request).id
        await node.take(.connected(id, nil, nil))
        return id
    }

    /// A live stream with its host and two viewers, whose host in memory was closed by a conflict.
    private func closed() async throws -> (host: StreamHost, source: SessionID, viewers: [SessionID]) {
        let source = try await connect(.publish, as: HostRig.ann, "chrome-publish")
        await node.take(.mediaStarted(source))
        let viewers = [
            try await connect(.play, as: nil, "chrome-play"),
            try await connect(.play, as: HostRig.bob, "chrome-play"),
        ]
        let host = try #require(try await node.knownHost(of: show))
        let known = await host.connections.count
        #expect(known == 3)
        await host.setRecording(true)
        store.fail(with: .conflict(current: 99))
        await #expect(throws: StageRefusal.self) {
            _ = try await node.perform(.setPaused(true), in: show, from: HostRig.ann)
        }
        store.fail(with: nil)
        #expect(host.isClosed)
        return (host, source, viewers)
    }

    @Test func `knows the sessions that go on, and hears of their end`() async throws {
        let (former, source, viewers) = try await closed()
        let host = try #require(try await node.knownHost(of: show))
        #expect(host !== former)
        let known = await Set(host.connections.keys)
        let sessions: [Stage.Connection] = ([source] + viewers).map { .session($0) }
        #expect(known == Set(sessions))
        let owner = await host.stage?.source?.owner
        #expect(owner == HostRig.ann.id)
        let count = await host.stage?.counts.viewers
        #expect(count == 2)
        #expect(await host.isRecording == true)
        await host.setRecording(false)
        await host.inheritRecording(true)
        #expect(await host.isRecording == false, "what it was told itself counts")
        for viewer in viewers { _ = await node.endSession(viewer) }
        let left = await Set(host.connections.keys)
        #expect(left == [.session(source)])
        _ = await node.endSession(source)
        #expect(await node.streamSnapshot(show)?.state == .ended)
        await node.stop()
    }

    @Test func `reports the files that the closed one could not report`() async throws {
        let (former, _, _) = try await closed()
        await former.keep(recording: .object(["id": .string("r")]))
        let host = try #require(try await node.knownHost(of: show))
        let (left, taken) = (await former.refusedReports.isEmpty, await host.refusedReports.isEmpty)
        #expect(left && !taken)
        await node.stop()
    }

    /// Nobody comes for such a stream, and the closed host was forgotten with what it had to report.
    @Test func `reports them although the stream has no sessions`() async throws {
        let former = try await node.host(of: show)
        _ = try await former.create(host: HostRig.ann.id, name: "Ann", edit: StageEdit())
        store.fail(with: .conflict(current: 99))
        await #expect(throws: StageRefusal.self) {
            _ = try await former.perform(.goLive, from: HostRig.ann)
        }
        #expect(former.isClosed)
        await former.keep(recording: .object(["id": .string("r")]))
        store.fail(with: nil)
        await node.keepHouse()
        await node.reopenStreams()
        let host = await node.registry[show]
        #expect(host?.isClosed == false)
        let isEmpty = await host?.refusedReports.isEmpty
        #expect(isEmpty == false)
        await node.stop()
    }

    /// There is nothing left that they would be of.
    @Test func `has no reports of a stream that is gone`() async throws {
        let former = try await node.host(of: show)
        await former.close(.unavailable)
        await former.keep(recording: .object(["id": .string("r")]))
        #expect(await former.closeIfIdle() == nil)
        await node.reopenStreams()
        #expect(await former.closeIfIdle() == .ended)
        await node.keepHouse()
        let isGone = await node.registry[show] == nil
        #expect(isGone)
        await node.stop()
    }

    @Test func `comes by itself while there are sessions`() async throws {
        let (former, _, _) = try await closed()
        await node.reopenStreams()
        let host = await node.registry[show]
        #expect(host !== former && host?.isClosed == false)
        await node.stop()
    }
}

@Suite struct `What a stage learns anew` {
    private var rig = LiveRig()

    @Test mutating func `is who has connected, with the viewers of the feed, and the source`() throws {
        let show = try #require(StreamID("show"))
        rig.begin(show)
        rig.takeNews()
        let source = try rig.publish("ann", as: .host, in: show)
        let reader = FeedReader(scope: .all, sender: nil, standing: .all)
        let wish = FeedWish(reader: reader, stream: show, preload: .onSwipe)
        let guest = try rig.admit(
            rig.candidate(SessionRequest(feed: wish, offer: ""), gets: [.audio, .video, .audio, .video]))
        rig.receive(.connected(guest, .aeadAES128GCM, nil))
        // Without a connection yet.
        let sender = Stage.Sender(id: try #require(ParticipantID("vic")), authority: .viewer)
        _ = try rig.admit(
            rig.candidate(
                SessionRequest(purpose: .stage, stream: show, sender: sender, offer: ""), gets: [.audio]))
        var connected: [SessionID] = []
        var owners: [ParticipantID?] = []
        for notice in rig.live.presence(in: show) {
            switch notice {
            case .connect(_, let id): connected.append(id)
            case .setSource(let source): owners.append(source?.owner)
            default: Issue.record("\(notice)")
            }
        }
        #expect(connected == [source, guest])
        #expect(owners == [ParticipantID("ann")])
        let other = try #require(StreamID("other"))
        #expect(rig.live.presence(in: other).isEmpty)
    }
}

extension StreamHost {
    /// As if the store had refused this before the host closed.
    fileprivate func keep(recording: JSON) {
        var batch = CommitBatch()
        batch.recordings = [recording]
        refusedReports.keep([batch], at: environment.now().elapsed)
    }
}
