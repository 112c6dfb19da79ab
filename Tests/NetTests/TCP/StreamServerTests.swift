import Base
import Net
import TestSupport
import Testing

/// Says back what it hears in frames, and goes by what the first byte of each says.
private final class Echo: StreamConversation {
    enum Command: Sendable {
        case say([UInt8])
        case end
    }

    private let diary: Watched<[String]>
    private var output: [UInt8] = []
    private(set) var isEstablished = false
    private(set) var isOver = false
    private(set) var deadline: MonotonicTime?

    init(_ diary: Watched<[String]>, at now: MonotonicTime) {
        self.diary = diary
        deadline = now + .seconds(60)
    }

    func receive(_ bytes: Span<UInt8>, at now: MonotonicTime) {
        let text = String(decoding: (0..<bytes.count).map { bytes[$0] }, as: UTF8.self)
        diary.change { $0.append(text) }
        switch text.last {
        case "e": isEstablished = true
        case "o": isOver = true
        case "d": deadline = now + .milliseconds(200)
        case "f": output += [UInt8](repeating: 0, count: 1 << 20)
        default: break
        }
        output += [0, UInt8(clamping: bytes.count)]
        for index in 0..<bytes.count { output.append(bytes[index]) }
    }

    func perform(_ command: Command, at now: MonotonicTime) {
        switch command {
        case .say(let bytes): output += [0, UInt8(clamping: bytes.count)] + bytes
        case .end: isOver = true
        }
    }

    func advance(to now: MonotonicTime) {
        diary.change { $0.append("due") }
        deadline = nil
    }

    func takeOutput(waiting: Int) -> [UInt8] {
        defer { output = [] }
        return output
    }

    func lose(at now: MonotonicTime) { diary.change { $0.append("lost") } }
}

@Suite struct StreamServers {
    private let diary = Watched<[String]>([])
    private let numbers = Watched<[ConnectionNumber]>([])

    private func server(_ change: (inout StreamServerLimits) -> Void = { _ in }) throws -> StreamServer<Echo>
    {
        var limits = StreamServerLimits()
        change(&limits)
        return try StreamServer(
            bind: TransportAddress(ip: .loopback, port: 0), name: "test", limits: limits
        ) { [diary, numbers] number, _, now in
            numbers.change { $0.append(number) }
            return Echo(diary, at: now)
        }
    }

    @Test func `have a conversation for each connection, which hears and says`() async throws {
        let server = try server()
        let (first, second) = (
            try RemoteStream(to: server.localAddress), try RemoteStream(to: server.localAddress)
        )
        first.send(raw: Array("one".utf8))
        second.send(raw: Array("two".utf8))
        #expect(first.receive(1) == [Array("one".utf8)])
        #expect(second.receive(1) == [Array("two".utf8)])
        let known = numbers.value
        server.tell(.say([7]), to: known[0])
        #expect(first.receive(1) == [[7]])
        server.tell(.end, to: known[1])
        #expect(second.waitForClose())
        server.tell(.say([8]), to: known[1])
        server.stop()
        #expect(first.waitForClose())
        #expect(diary.value.count { $0 == "lost" } == 2)
    }

    @Test func `close once what was said last has left`() throws {
        let server = try server()
        let remote = try RemoteStream(to: server.localAddress)
        remote.send(raw: Array("so".utf8))
        #expect(remote.receive(1) == [Array("so".utf8)])
        // What is sent meanwhile is nothing to anybody any more.
        remote.send(raw: Array("more".utf8))
        #expect(remote.waitForClose())
        #expect(!diary.value.contains("more"))
        server.stop()
    }

    @Test func `keep deadlines`() async throws {
        let server = try server()
        let remote = try RemoteStream(to: server.localAddress)
        remote.send(raw: Array("d".utf8))
        try await diary.wait { $0.contains("due") }
        server.stop()
    }

    @Test func `displace the oldest that are not established, and keep the others`() async throws {
        let server = try server { $0.waitingPerAddress = 4 }
        let established = try RemoteStream(to: server.localAddress)
        established.send(raw: Array("e".utf8))
        #expect(established.receive(1).count == 1)
        let waiting = try (0..<9).map { _ in try RemoteStream(to: server.localAddress) }
        for remote in waiting.prefix(5) { #expect(remote.waitForClose()) }
        waiting[8].send(raw: Array("x".utf8))
        #expect(waiting[8].receive(1).count == 1)
        established.send(raw: Array("y".utf8))
        #expect(established.receive(1) == [Array("y".utf8)])
        #expect(server.counters.displaced == 5 && server.counters.accepted == 10)
        server.stop()
    }

    @Test func `refuse what is beyond the limit of an address`() throws {
        let server = try server { $0.perAddress = 2 }
        let kept = try (0..<2).map { _ in try RemoteStream(to: server.localAddress) }
        for remote in kept {
            remote.send(raw: Array("e".utf8))
            #expect(remote.receive(1).count == 1)
        }
        #expect(try RemoteStream(to: server.localAddress).waitForClose())
        #expect(server.counters.refused == 1)
        server.stop()
    }

    @Test func `keep no more for a client that does not read than the limit`() throws {
        let server = try server { $0.output = 1_000 }
        let remote = try RemoteStream(to: server.localAddress)
        remote.send(raw: Array("f".utf8))
        #expect(remote.waitForClose())
        server.stop()
    }
}
