import Base
import Stage
import Store
import TestSupport
import Testing

@testable import Node

@Suite struct `A name that nobody gave to a stream` {
    private let store = SlowStore()
    private let node: Node
    private let ghost: StreamID
    private let ann = HostRig.ann

    init() throws {
        var configuration = NodeConfiguration(udp: TransportAddress(ip: .loopback, port: 0))
        configuration.createsStreamsOnPublish = false
        node = try Node(configuration: configuration, log: .silent, store: store)
        ghost = try #require(StreamID("ghost"))
    }

    /// Whatever may be asked of a stream, by strangers and by those with a token.
    private func askForAll(of id: StreamID) async throws {
        await #expect(throws: SessionRefusal.stage(.unknownStream)) {
            let request = SessionRequest(
                purpose: .play, stream: id, sender: nil, offer: "", patience: .seconds(9))
            _ = try await node.createSession(request)
        }
        await #expect(throws: StageRefusal.unknownStream) {
            _ = try await node.follow(id, as: nil, since: nil, until: nil, TestFollower())
        }
        await #expect(throws: StageRefusal.unknownStream) {
            _ = try await node.perform(.raiseHand, in: id, from: HostRig.bob)
        }
        await #expect(throws: StageRefusal.unknownStream) { _ = try await node.look(at: id, as: HostRig.bob) }
        #expect(try await node.linkRevocations(of: id) == StageRecord.LinkRevocations())
        #expect(await node.streamSnapshot(id) == nil)
    }

    @Test func `is looked up once, and has no place in memory`() async throws {
        for _ in 0..<3 { try await askForAll(of: ghost) }
        #expect(store.loads == [.one(ghost)])
        #expect(await node.registry.all.isEmpty)
        await node.stop()
    }

    @Test func `means something as soon as it is given to one, also when that has ended`() async throws {
        try await askForAll(of: ghost)
        _ = try await node.createStream(
            Node.StreamCreation(id: ghost, host: ann.id, hostName: "Ann", edit: StageEdit()))
        #expect(try await node.look(at: ghost, as: ann).stream.state == .backstage)
        _ = try await node.perform(.end, in: ghost, from: ann)
        for host in await node.registry.all {
            #expect(await host.closeIfIdle() == .ended)
            #expect(host.isClosed)
        }
        #expect(try await node.look(at: ghost, as: ann).stream.state == .ended)
        await node.stop()
    }

    /// What is read while the server stops would begin anew, and be stopped by nobody.
    @Test func `is not looked up when the server stops, whether it was in memory or not`() async throws {
        _ = try await node.createStream(
            Node.StreamCreation(id: ghost, host: ann.id, hostName: "Ann", edit: StageEdit()))
        await node.stop()
        let loads = store.loads
        await #expect(throws: StageRefusal.overloaded) { _ = try await node.look(at: ghost, as: ann) }
        #expect(store.loads == loads)
    }

    @Test func `is remembered among so many at most`() throws {
        var absent = AbsentStreams()
        for number in 0...(2 * AbsentStreams.limit) {
            let id = try #require(StreamID("s\(number)"))
            absent.insert(id)
            #expect(absent.contains(id) && absent.count <= AbsentStreams.limit)
        }
        let last = try #require(StreamID("s\(2 * AbsentStreams.limit)"))
        absent.remove(last)
        #expect(!absent.contains(last))
    }
}

@Suite struct `A name that is waited for` {
    /// Of a session there nobody would hear, and a publisher would believe to be live.
    @Test func `takes no session once its host has closed`() async throws {
        let configuration = NodeConfiguration(udp: TransportAddress(ip: .loopback, port: 0))
        let node = try Node(configuration: configuration, log: .silent)
        let admission = try await node.admitIngest(
            SessionRequest(
                ingesting: try #require(StreamID("ghost")), sender: HostRig.ann, received: .zero,
                clientAddress: .loopback))
        await admission.welcome.host.close(.unavailable)
        await #expect(throws: SessionRefusal.overloaded) {
            _ = try await node.openIngest(admission, sources: [])
        }
        #expect(await node.live.sessions.count == 0)
        await node.stop()
    }

    /// Where publishing makes streams, somebody may wait for any name; who does not wait leaves nothing behind.
    @Test func `has a place for as long as that`() async throws {
        let store = SlowStore()
        let configuration = NodeConfiguration(udp: TransportAddress(ip: .loopback, port: 0))
        let node = try Node(configuration: configuration, log: .silent, store: store)
        let ghost = try #require(StreamID("ghost"))
        for _ in 0..<2 {
            await #expect(throws: SessionRefusal.noPublisher) {
                _ = try await node.createSession(
                    SessionRequest(purpose: .play, stream: ghost, sender: nil, offer: ""))
            }
        }
        #expect(await node.registry.all.isEmpty)
        for _ in 0..<2 {
            let leave = try await node.follow(ghost, as: nil, since: nil, until: nil, TestFollower())
            await node.keepHouse()
            #expect(await node.registry[ghost] != nil)
            await leave()
            await node.keepHouse()
            #expect(await node.registry.all.isEmpty)
        }
        #expect(store.loads == [.one(ghost)])
        await node.stop()
    }
}
