import Base
import CLinux
import Glibc
import TestSupport
import Testing

@testable import Net

/// Says what it is told, keeps what it hears, and ends when the other end says "bye".
private final class Talk: StreamConversation {
    enum Command: Sendable {
        case say([UInt8])
        case end
    }

    private let diary: Watched<[String]>
    private var output: [UInt8] = Array("hello".utf8)
    private(set) var isOver = false
    let deadline: MonotonicTime? = nil

    init(_ diary: Watched<[String]>) { self.diary = diary }

    var isEstablished: Bool { true }

    func receive(_ bytes: Span<UInt8>, at now: MonotonicTime) {
        let text = String(decoding: (0..<bytes.count).map { bytes[$0] }, as: UTF8.self)
        diary.change { $0.append(text) }
        if text.hasSuffix("bye") { isOver = true }
    }

    func perform(_ command: Command, at now: MonotonicTime) {
        switch command {
        case .say(let bytes): output += bytes
        case .end: isOver = true
        }
    }

    func advance(to now: MonotonicTime) {}

    func takeOutput(waiting: Int) -> [UInt8] {
        diary.change { if waiting > 0, $0.last != "waiting" { $0.append("waiting") } }
        defer { output = [] }
        return output
    }

    func lose(at now: MonotonicTime) { diary.change { $0.append("lost") } }
}

/// Keeps what it hears, answers each "ping", and hangs up at "hang up".
private final class Answerer: StreamConversation {
    private let diary: Watched<[String]>
    private var output: [UInt8] = []
    private(set) var isOver = false
    let deadline: MonotonicTime? = nil

    init(_ diary: Watched<[String]>) { self.diary = diary }

    var isEstablished: Bool { true }

    func receive(_ bytes: Span<UInt8>, at now: MonotonicTime) {
        let text = String(decoding: (0..<bytes.count).map { bytes[$0] }, as: UTF8.self)
        diary.change { $0.append(text) }
        if text.hasSuffix("ping") { output += Array("bye".utf8) }
        if text.hasSuffix("hang up") { isOver = true }
    }

    func perform(_ command: Int, at now: MonotonicTime) {}
    func advance(to now: MonotonicTime) {}

    func takeOutput(waiting: Int) -> [UInt8] {
        defer { output = [] }
        return output
    }

    func lose(at now: MonotonicTime) {}
}

/// A port whose connections the kernel accepts, and nobody reads.
private final class SilentPort {
    private let descriptor = clinux_tcp_listen(clinux_address(TransportAddress(ip: .loopback, port: 0)), 4)

    var port: UInt16 {
        var bound = clinux_address()
        _ = clinux_local_address(descriptor, &bound)
        return TransportAddress(bound).port
    }

    deinit { clinux_close(descriptor) }
}

/// A port that nobody else gets, and at which nobody listens.
private final class TakenPort {
    private let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)

    init() {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let result = unsafe withUnsafeBytes(of: &address) { bytes in
            unsafe bind(
                descriptor, bytes.assumingMemoryBound(to: sockaddr.self).baseAddress,
                socklen_t(bytes.count))
        }
        #expect(result == 0)
    }

    var port: UInt16 {
        var bound = clinux_address()
        _ = unsafe clinux_local_address(descriptor, &bound)
        return TransportAddress(bound).port
    }

    deinit { clinux_close(descriptor) }
}

@Suite struct `An outgoing stream` {
    private let diary = Watched<[String]>([])
    private let heard = Watched<[String]>([])
    private let ends = Watched<[OutgoingEnd]>([])

    private func server() throws -> StreamServer<Answerer> {
        try StreamServer(bind: TransportAddress(ip: .loopback, port: 0), name: "test") {
            [heard] _, _, _ in Answerer(heard)
        }
    }

    private func stream(
        to host: String = "127.0.0.1", port: UInt16, isSecure: Bool = false,
        limits: OutgoingLimits = OutgoingLimits(),
        permits: @escaping @Sendable (IPAddress) -> Bool = { _ in true }
    ) throws -> OutgoingStream<Talk> {
        let target = OutgoingTarget(host: host, port: port, isSecure: isSecure, permits: permits)
        return try OutgoingStream(
            to: target, name: "test", limits: limits, make: { [diary] _ in Talk(diary) },
            ended: { [ends] end in ends.change { $0.append(end) } })
    }

    @Test func `says what it is told, and ends when it is over`() async throws {
        let server = try server()
        defer { server.stop() }
        let stream = try stream(port: server.localAddress.port)
        try await heard.wait { $0.joined() == "hello" }
        stream.tell(.say(Array(" ping".utf8)))
        try await ends.wait { $0 == [.over] }
        #expect(heard.value.joined() == "hello ping")
        // The kernel may not have taken all at once.
        #expect(diary.value.filter { $0 != "waiting" } == ["bye", "lost"])
    }

    @Test func `finds names as addresses`() async throws {
        let server = try server()
        defer { server.stop() }
        let stream = try stream(to: "localhost", port: server.localAddress.port) { $0.ipv4 != nil }
        try await heard.wait { $0.joined() == "hello" }
        stream.stop()
        try await ends.wait { $0 == [.over] }
    }

    @Test func `knows when the other end hangs up`() async throws {
        let server = try server()
        defer { server.stop() }
        let stream = try stream(port: server.localAddress.port)
        stream.tell(.say(Array(" hang up".utf8)))
        try await ends.wait { $0 == [.closed] }
    }

    @Test func `connects to nothing that is not permitted`() async throws {
        let server = try server()
        defer { server.stop() }
        for host in ["127.0.0.1", "localhost"] {
            ends.change { $0 = [] }
            let stream = try stream(to: host, port: server.localAddress.port) { !$0.isLoopback }
            try await ends.wait { $0 == [.forbidden] }
            _ = stream
        }
        #expect(server.counters.accepted == 0)
    }

    @Test func `says why nobody is there`() async throws {
        let taken = TakenPort()
        let stream = try stream(port: taken.port)
        try await ends.wait { $0 == [.unreachable("Connection refused")] }
        withExtendedLifetime((stream, taken)) {}
    }

    @Test func `gives up who takes nothing`() async throws {
        let listener = SilentPort()
        var limits = OutgoingLimits()
        limits.stall = .milliseconds(300)
        let stream = try stream(port: listener.port, limits: limits)
        // More than kernels keep for who does not read.
        for _ in 0..<300 { stream.tell(.say([UInt8](repeating: 7, count: 64 << 10))) }
        try await ends.wait { $0 == [.stalled] }
        #expect(diary.value.contains("waiting") && diary.value.last == "lost")
        withExtendedLifetime(listener) {}
    }

    @Test func `speaks no TLS with who speaks none`() async throws {
        let server = try server()
        defer { server.stop() }
        let stream = try stream(port: server.localAddress.port, isSecure: true)
        // It is answered in the clear, as soon as it says that.
        try await heard.wait { !$0.isEmpty }
        #expect(heard.value.first?.utf8.first == 0x16)
        stream.stop()
        try await ends.wait { !$0.isEmpty }
        #expect(!heard.value.joined().contains("hello"))
    }
}
