import Dispatch
import Foundation
import RostrumClient
import RostrumClientHeadless
import Testing

/// Against a real server over loopback: HTTP, WebSockets, ICE, DTLS, SRTP and data channels.
@Suite(.serialized, .timeLimit(.minutes(5))) struct `A client and a server` {
    private let engine: HeadlessEngine

    init() throws {
        engine = try HeadlessEngine()
    }

    private func withServer(_ body: (RostrumServer) async throws -> Void) async throws {
        let process = try await ServerProcess()
        defer { process.stop() }
        try await body(RostrumServer(process.url, sockets: engine))
    }

    /// Sends Opus that says nothing until it is cancelled.
    private func keepSending(
        _ session: MediaSession, _ payload: [UInt8] = [0xFC, 0xFF, 0xFE]
    ) -> Task<Void, Never> {
        Task {
            var timestamp: UInt32 = 0
            for await _ in Self.ticks(every: .milliseconds(20)) {
                await session.send(
                    MediaPacket(
                        mid: "0", codec: "opus", payload: payload, timestamp: timestamp,
                        audioLevel: 20))
                timestamp &+= 960
            }
        }
    }

    /// The beat of a sender's clock, until the task is cancelled; one that comes too soon for who listens is left out.
    private static func ticks(every pause: DispatchTimeInterval) -> AsyncStream<Void> {
        let (ticks, tick) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let timer = DispatchSource.makeTimerSource()
        timer.setEventHandler { tick.yield() }
        timer.schedule(deadline: .now(), repeating: pause)
        nonisolated(unsafe) let ticking = timer
        tick.onTermination = { _ in ticking.cancel() }
        timer.resume()
        return ticks
    }

    private func awaitConnection(_ states: AsyncStream<ConnectionState>) async -> [ConnectionState] {
        var seen: [ConnectionState] = []
        for await state in states {
            seen.append(state)
            if state == .connected { break }
        }
        return seen
    }

    @Test func `carry sound from a publisher to a viewer`() async throws {
        try await withServer { server in
            let host = server.stream("talk", tokens: .development(.host, identity: "ann", name: "Ann"))
            let publishing = try await host.publish([.sendAudio], engine: engine)
            #expect(await awaitConnection(publishing.states) == [.connecting, .connected])
            let sender = keepSending(publishing)
            defer { sender.cancel() }

            let watching = try await server.stream("talk").watch(wait: 10, engine: engine)
            var packets: [MediaPacket] = []
            for await packet in watching.packets {
                packets.append(packet)
                // Until the server has told its clock.
                if packets.count >= 20, packet.captured != nil { break }
            }
            #expect(packets.allSatisfy { $0.codec == "opus" && $0.payload == [0xFC, 0xFF, 0xFE] })
            #expect(packets.allSatisfy { $0.mid == "0" })
            #expect(Set(packets.map(\.sequenceNumber)).count == packets.count)
            let captured = try #require(packets.last?.captured)
            #expect(abs(captured - Date().timeIntervalSince1970) < 60)

            #expect(try await server.stream("talk").info().isLive)
            #expect(try await server.feed().streams.map(\.id) == ["talk"])
            await watching.close()
            await publishing.close()
            var states: [ConnectionState] = []
            for await state in watching.states { states.append(state) }
            #expect(states.last == .disconnected(.closed))
        }
    }

    @Test func `tell a stage's followers what happens on it`() async throws {
        try await withServer { server in
            let host = server.stream("talk", tokens: .development(.host, identity: "ann", name: "Ann"))
            let stage = try await host.joinStage(
                sending: [.sendAudio], voices: 1, pictures: 0, engine: engine)
            let sender = keepSending(stage)
            defer { sender.cancel() }

            let viewer = server.stream("talk", tokens: .development(.viewer, identity: "bob", name: "Bob"))
            let sync = viewer.follow()
            var isMe = false
            // The audience may write only when the stream lets it in, which begins with the host's media.
            for await event in sync.events {
                guard case .me(let me) = event else { continue }
                isMe = me.id == "bob" && me.role == .viewer
                if me.isAdmitted { break }
            }
            try await sync.comment("Good evening!", id: "c-1")
            try await viewer.raiseHand()
            var (comment, hands) = (String?.none, [String]())
            for await event in sync.events {
                switch event {
                case .comments(let comments): comment = comments.last?.text
                case .changed(let state): hands = state.raisedHands
                case .message(let message):
                    let text = String(decoding: message.data, as: UTF8.self)
                    // Nothing else would come of it.
                    try #require(message.type != "refused", "\(text)")
                case .me, .muteRequested: break
                }
                if comment != nil, hands == ["bob"], isMe { break }
            }
            #expect(comment == "Good evening!")
            #expect(try await host.comments().map(\.text) == ["Good evening!"])

            try await host.invite("bob")
            try await viewer.acceptInvitation(withVideo: false)
            for await event in sync.events {
                if case .changed(let state) = event, state.speakers["bob"] != nil { break }
            }
            // A speaker's token came with the answer.
            let speaking = try await viewer.joinStage(
                sending: [.sendAudio], voices: 1, pictures: 0, engine: engine)
            let other = keepSending(speaking)
            defer { other.cancel() }
            for await message in speaking.messages where message.type == "slots" { break }
            for await packet in speaking.packets {
                #expect(packet.codec == "opus")
                break
            }
            await speaking.close()
            await sync.close()
            await stage.close()
        }
    }

    @Test func `swipe through the feed`() async throws {
        try await withServer { server in
            let payloads: [String: [UInt8]] = ["north": [0xFC, 0xFF, 0xFE], "south": [0xFC, 0xFF, 0xFD]]
            var (sessions, senders) = ([MediaSession](), [Task<Void, Never>]())
            for (name, payload) in payloads.sorted(by: { $0.key < $1.key }) {
                let host = server.stream(name, tokens: .development(.host, identity: name, name: name))
                let session = try await host.publish([.sendAudio], engine: engine)
                senders.append(keepSending(session, payload))
                sessions.append(session)
            }
            defer { for sender in senders { sender.cancel() } }
            let feed = server.followFeed()
            for await streams in feed.streams where Set(streams.map(\.id)) == ["north", "south"] { break }
            #expect(Set(try await server.feed().streams.map(\.id)) == ["north", "south"])

            let watching = try await server.watchFeed(at: "north", engine: engine)
            for await packet in watching.packets where packet.payload == payloads["north"] { break }
            // Media may come before the control channel is open.
            for await message in watching.messages where message.type == "slots" { break }
            try await watching.focus("south", ahead: "north")
            for await packet in watching.packets where packet.payload == payloads["south"] { break }

            await watching.close()
            await feed.close()
            for session in sessions { await session.close() }
        }
    }

    @Test func `say which rule forbids something`() async throws {
        try await withServer { server in
            let viewer = server.stream("talk", tokens: .development(.viewer, identity: "bob", name: "Bob"))
            await #expect {
                try await viewer.publish([.sendAudio], engine: engine)
            } throws: { error in
                guard case RostrumError.refused(403, _, let detail, _) = error else { return false }
                return !detail.isEmpty
            }
            await #expect(throws: RostrumError.self) { try await viewer.goLive() }
        }
    }

    @Test func `end for good where there is no good token`() async throws {
        try await withServer { server in
            let sync = server.stream("talk", tokens: .fixed("eyJhbGciOiJIUzI1NiJ9.e30.bm90IG91cnM")).follow()
            var last: ConnectionState?
            for await state in sync.states { last = state }
            #expect(last == .disconnected(.expired))
        }
    }

    @Test func `go on after the server was started anew`() async throws {
        let first = try await ServerProcess()
        let port = try #require(first.url.port)
        let server = RostrumServer(first.url, sockets: engine)
        let host = server.stream("talk", tokens: .development(.host, identity: "ann", name: "Ann"))
        let sync = host.follow()
        let publishing = try await host.publish([.sendAudio], engine: engine)
        for await state in sync.states where state == .connected { break }
        for await state in publishing.states where state == .connected { break }
        let sender = keepSending(publishing)
        defer { sender.cancel() }
        first.stop()
        for await state in sync.states where state == .reconnecting { break }
        for await state in publishing.states where state == .reconnecting { break }
        let second = try await ServerProcess(port: port)
        defer { second.stop() }
        for await state in sync.states where state == .connected { break }
        for await state in publishing.states where state == .connected { break }
        let watching = try await server.stream("talk").watch(wait: 10, engine: engine)
        for await packet in watching.packets {
            #expect(packet.codec == "opus")
            break
        }
        #expect(try await host.info().isLive)
        await watching.close()
        await publishing.close()
        await sync.close()
    }
}
