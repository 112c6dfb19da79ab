import Base
import ClientPeer
import Foundation
import Net
import Peer
import RostrumClient
import Synchronization
import TestSupport
import Testing
import Wire

@testable import RostrumClientHeadless

/// Stands in for the engine's thread: it notes its commands and does nothing of what they say.
private final class EngineThread: Sendable {
    /// In words.
    let commands = Watched<[String]>([])
    let setups = Watched<[HeadlessSetup]>([])
    let packets = Watched<[MediaPacket]>([])
    let isOver = Watched(false)

    func post(_ command: HeadlessCommand) -> Bool {
        guard !isOver.value else { return false }
        let words: String
        switch command {
        case .add(let setup):
            words = "add \(setup.id)"
            setups.change { $0.append(setup) }
        case .send(let id, let packet):
            words = "send \(id)"
            packets.change { $0.append(packet) }
        case .say(let id, let text): words = "say \(id) \(text)"
        case .remove(let id, let done):
            words = "remove \(id)" + (done == nil ? "" : " and tell")
            done?.resume()
        }
        commands.change { $0.append(words) }
        return true
    }
}

@Suite(.timeLimit(.minutes(5))) struct `A connection without a media stack` {
    private let thread = EngineThread()
    private let offer: ClientOffer

    init() {
        var random = SeededGenerator(seed: 8_829)
        offer = ClientOffer(
            [.playAudio, .playVideo], credentials: ICECredentials(using: &random),
            fingerprint: Self.fingerprint, using: &random)
    }

    private static let fingerprint = SDPFingerprint(
        algorithm: "sha-256", bytes: Array(repeating: 7, count: 32))

    private func makeConnection() -> HeadlessConnection {
        HeadlessConnection(id: 7, offer: offer, post: { [thread] in thread.post($0) })
    }

    /// The answer of a server with these addresses.
    private func answer(
        udp: [String] = ["127.0.0.1:7000"], tcp: [String] = [],
        _ change: (inout SessionDescription) -> Void = { _ in }
    ) throws -> String {
        var random = SeededGenerator(seed: 3_264)
        let transport = LocalTransport(
            credentials: ICECredentials(using: &random), fingerprint: Self.fingerprint,
            udp: udp.compactMap { TransportAddress($0) },
            tcp: tcp.compactMap { TransportAddress($0)?.over(.tcp) })
        let received = try SessionOffer(SessionDescription(parsing: offer.description.text), for: .play)
        let result = try Negotiator(policy: NegotiationPolicy()).answer(
            to: received, as: transport, using: &random)
        var description = try SessionDescription(parsing: result.description.text)
        change(&description)
        return description.text
    }

    /// The addresses that are checked with this answer.
    private func checked(_ answer: String) async throws -> [String] {
        let made = makeConnection()
        try await made.accept(answer: answer)
        let setup = try #require(thread.setups.value.first)
        return setup.plan.addresses.map { "\($0)" }
    }

    @Test func `has its end, and nothing else, get through where too much waits`() {
        let commands: [HeadlessCommand] = [.say(7, "hello"), .remove(7, nil)]
        #expect(commands.map(\.isEssential) == [false, true])
    }

    // MARK: Offer and answer

    @Test func `offers what it was made with`() async throws {
        let made = makeConnection()
        let text = try await made.makeOffer()
        #expect(try SessionDescription(parsing: text) == offer.description)
        #expect(thread.commands.value.isEmpty)
    }

    @Test func `begins with the answer, by the credentials of its offer`() async throws {
        let made = makeConnection()
        try await made.accept(answer: try answer())
        #expect(thread.commands.value == ["add 7"])
        let setup = try #require(thread.setups.value.first)
        #expect(setup.id == 7 && setup.credentials == offer.credentials)
        #expect(setup.plan.lines.map(\.mid) == ["0", "1"])
        #expect(setup.socket.localAddress.port != 0)
    }

    @Test(arguments: ["", "v=0\r\n", "an answer", "v=0\r\no=- 1 1 IN IP4 0.0.0.0\r\ns=-\r\nt=0 0\r\n"])
    func `refuses what is no answer to its offer`(text: String) async throws {
        let made = makeConnection()
        let error = await #expect(throws: RostrumError.self) { try await made.accept(answer: text) }
        guard case .unusable(let words) = error else {
            Issue.record("not unusable: \(String(describing: error))")
            return
        }
        #expect(words.hasPrefix("the answer: "))
        #expect(thread.commands.value.isEmpty)
    }

    @Test func `refuses an answer without an address by UDP`() async throws {
        let made = makeConnection()
        let text = try answer(udp: [], tcp: ["127.0.0.1:7000"])
        await #expect(throws: RostrumError.unusable("no address by UDP in the answer")) {
            try await made.accept(answer: text)
        }
        let hidden = try answer(udp: [], tcp: ["127.0.0.1:7000"]) {
            $0.media[0].append(.candidate, "9 2 udp 100 127.0.0.1 7001 typ host")
            $0.media[0].append(.candidate, "9 1 udp 100 3f0c7a5e.local 7001 typ host")
        }
        await #expect(throws: RostrumError.unusable("no address by UDP in the answer")) {
            try await made.accept(answer: hidden)
        }
        #expect(thread.commands.value.isEmpty)
    }

    @Test func `checks addresses of one version of IP, the older one if there is any`() async throws {
        let text = try answer(udp: ["[::1]:7000", "127.0.0.1:7001", "[::1]:7002", "127.0.0.1:7003"])
        #expect(try await checked(text) == ["127.0.0.1:7001", "127.0.0.1:7003"])
    }

    @Test func `checks eight addresses at most, the best ones`() async throws {
        let text = try answer(udp: (0..<12).map { "127.0.0.1:\(7_000 + $0)" })
        #expect(try await checked(text) == (0..<8).map { "127.0.0.1:\(7_000 + $0)" })
    }

    // MARK: Talking

    @Test func `says nothing before its control channel is open, or after that was closed`() async throws {
        let made = makeConnection()
        try await made.accept(answer: try answer())
        let outlet = try #require(thread.setups.value.first).outlet
        await #expect(throws: RostrumError.notConnected) { try await made.say("too soon") }
        outlet.isControlOpen.store(true, ordering: .releasing)
        try await made.say("now")
        outlet.isControlOpen.store(false, ordering: .releasing)
        await #expect(throws: RostrumError.notConnected) { try await made.say("too late") }
        #expect(thread.commands.value == ["add 7", "say 7 now"])
    }

    @Test func `passes packets on as they are`() async throws {
        let made = makeConnection()
        let packet = MediaPacket(mid: "0", codec: "opus", payload: [1, 2], timestamp: 3, audioLevel: 4)
        await made.send(packet)
        #expect(thread.packets.value == [packet] && thread.commands.value == ["send 7"])
    }

    @Test func `tells what happens in order, and ends when it is closed`() async throws {
        let made = makeConnection()
        try await made.accept(answer: try answer())
        let outlet = try #require(thread.setups.value.first).outlet
        let told: [MediaEvent] = [.connected, .controlOpened, .message("a"), .lost("b")]
        for event in told { outlet.tell(event) }
        outlet.isControlOpen.store(true, ordering: .releasing)
        await made.close()
        outlet.tell(.message("after the end"))
        var heard: [MediaEvent] = []
        for await event in made.events { heard.append(event) }
        for await _ in made.packets { Issue.record("no packet came") }
        #expect(heard == told)
        #expect(thread.commands.value == ["add 7", "remove 7 and tell"])
        await #expect(throws: RostrumError.notConnected) { try await made.say("closed") }
    }

    /// An app that does not read must not cost memory without end.
    @Test func `keeps the latest events and packets for an app that does not read`() async throws {
        let made = makeConnection()
        try await made.accept(answer: try answer())
        let outlet = try #require(thread.setups.value.first).outlet
        for number in 0..<1_500 {
            outlet.tell(MediaEvent.message("\(number)"))
            outlet.tell(MediaPacket(mid: "0", codec: "opus", payload: [], timestamp: UInt32(number)))
        }
        outlet.finish()
        var events: [MediaEvent] = []
        for await event in made.events { events.append(event) }
        var stamps: [UInt32] = []
        for await packet in made.packets { stamps.append(packet.timestamp) }
        #expect(events.count == 256 && events.first == .message("1244"))
        #expect(stamps.count == 1_024 && stamps.first == 476 && stamps.last == 1_499)
    }

    // MARK: Ends

    @Test func `cannot begin once its engine has ended`() async throws {
        thread.isOver.change { $0 = true }
        let made = makeConnection()
        let text = try answer()
        await #expect(throws: RostrumError.notConnected) { try await made.accept(answer: text) }
        await made.send(MediaPacket(mid: "0", codec: "opus", payload: [], timestamp: 0))
        #expect(thread.commands.value.isEmpty)
    }

    @Test func `ends although its engine has ended before`() async throws {
        let made = makeConnection()
        try await made.accept(answer: try answer())
        let outlet = try #require(thread.setups.value.first).outlet
        outlet.isControlOpen.store(true, ordering: .releasing)
        thread.isOver.change { $0 = true }
        await #expect(throws: RostrumError.notConnected) { try await made.say("into the void") }
        await made.close()
        for await _ in made.events { Issue.record("nothing happened") }
        for await _ in made.packets { Issue.record("no packet came") }
    }

    @Test func `is removed from its engine when the app forgets it`() {
        forget()
        #expect(thread.commands.value == ["remove 7"])
    }

    /// Makes a connection that nobody keeps.
    private func forget() { _ = makeConnection() }
}

@Suite(.timeLimit(.minutes(5))) struct `An engine without a media stack` {
    private let engine: HeadlessEngine

    init() throws {
        engine = try HeadlessEngine()
    }

    @Test(arguments: [("VP8", "VP8"), ("vp9", "VP9"), ("h264", "H264"), ("AV1", "AV1")])
    func `offers a codec however its name is written`(codec: String, name: String) async throws {
        let made = try await engine.makeConnection([.sendVideo(codec: codec)])
        let offer = try SessionDescription(parsing: try await made.makeOffer())
        let names = try offer.media[0].rtpMaps().map(\.encoding)
        #expect(names == [name, "rtx"])
        await made.close()
    }

    @Test(arguments: ["opus", "H265", "", "VP8 "])
    func `refuses a codec that it does not know`(codec: String) async throws {
        await #expect(throws: RostrumError.unusable("\(codec) is none of VP8, VP9, H264 and AV1")) {
            _ = try await engine.makeConnection([.sendAudio, .sendVideo(codec: codec)])
        }
    }

    @Test func `has other credentials for each connection, and one certificate for all`() async throws {
        var offers: [SessionDescription] = []
        for _ in 0..<2 {
            let made = try await engine.makeConnection([.sendAudio, .receiveVideo, .control])
            offers.append(try SessionDescription(parsing: try await made.makeOffer()))
            await made.close()
        }
        #expect(offers[0].media.map(\.media) == ["audio", "video", "application"])
        #expect(offers[0].media[0].iceCredentials != offers[1].media[0].iceCredentials)
        #expect(offers[0].media[0].first(.fingerprint) == offers[1].media[0].first(.fingerprint))
    }

    @Test(arguments: ["/sync", "mailto:ann@example.com"])
    func `refuses an address that is none of a WebSocket`(text: String) async throws {
        let url = try #require(URL(string: text))
        await #expect(throws: RostrumError.unusable("\(text) is no address of a WebSocket")) {
            _ = try await engine.connect(to: url)
        }
    }
}
