import Base
import CLinux
import TestSupport
import Testing

@testable import Net

/// Is over once it is told anything, with more to send than kernels keep, and notes what it hears.
private final class LongFarewell: StreamConversation {
    private let diary: Watched<[String]>
    private var output: [UInt8] = []
    private(set) var isOver = false
    let deadline: MonotonicTime? = nil

    init(_ diary: Watched<[String]>) { self.diary = diary }

    var isEstablished: Bool { true }

    func receive(_ bytes: Span<UInt8>, at now: MonotonicTime) {
        let text = String(decoding: (0..<bytes.count).map { bytes[$0] }, as: UTF8.self)
        diary.change { $0.append(text) }
    }

    func perform(_ command: Int, at now: MonotonicTime) {
        output = [UInt8](repeating: 7, count: 32 << 20)
        isOver = true
        diary.change { $0.append("over") }
    }

    func advance(to now: MonotonicTime) {}

    func takeOutput(waiting: Int) -> [UInt8] {
        defer { output = [] }
        return output
    }

    func lose(at now: MonotonicTime) {}
}

@Suite struct `The farewell of an outgoing stream` {
    @Test func `brings nothing to a conversation that is over`() async throws {
        let listener = clinux_tcp_listen(clinux_address(TransportAddress(ip: .loopback, port: 0)), 4)
        try #require(listener >= 0)
        defer { clinux_close(listener) }
        var bound = clinux_address()
        _ = unsafe clinux_local_address(listener, &bound)
        let (diary, ends) = (Watched<[String]>([]), Watched<[OutgoingEnd]>([]))
        let target = OutgoingTarget(
            host: "127.0.0.1", port: TransportAddress(bound).port, isSecure: false
        ) { _ in true }
        let stream = try OutgoingStream<LongFarewell>(
            to: target, name: "test", make: { _ in LongFarewell(diary) },
            ended: { end in ends.change { $0.append(end) } })
        stream.tell(1)
        try await diary.wait { $0 == ["over"] }
        var remote = clinux_address()
        let peer = unsafe clinux_tcp_accept(listener, &remote, 0)
        try #require(peer >= 0)
        defer { clinux_close(peer) }
        let late = Array("late".utf8)
        let sent = unsafe clinux_stream_send(peer, late, Int32(late.count))
        #expect(sent == 4)
        try await ends.wait { $0 == [.over] }
        #expect(diary.value == ["over"])
        withExtendedLifetime(stream) {}
    }
}
