import Base
import Dispatch
import TestSupport
import Testing

@testable import Net

/// Notes the numbers that it is told, and how often it is lost.
private final class Tally: StreamConversation {
    private let performed: Watched<[Int]>
    private let losses: Watched<Int>
    private(set) var isOver = false
    let deadline: MonotonicTime? = nil

    init(_ performed: Watched<[Int]>, _ losses: Watched<Int>) {
        self.performed = performed
        self.losses = losses
    }

    var isEstablished: Bool { true }

    func receive(_ bytes: Span<UInt8>, at now: MonotonicTime) {}

    /// A negative number ends it.
    func perform(_ command: Int, at now: MonotonicTime) {
        performed.change { $0.append(command) }
        if command < 0 { isOver = true }
    }

    func advance(to now: MonotonicTime) {}
    func takeOutput(waiting: Int) -> [UInt8] { [] }
    func lose(at now: MonotonicTime) { losses.change { $0 += 1 } }
}

/// A stream whose thread waits, once it is connected, until a test lets it go on.
private final class HeldStream {
    private let port: ListeningPort
    private let isConnected: Watched<Bool>
    private let gate: DispatchSemaphore
    let stream: OutgoingStream<Tally>
    let performed: Watched<[Int]>
    let losses: Watched<Int>
    let ends: Watched<[OutgoingEnd]>

    init() throws {
        let port = try ListeningPort(TransportAddress(ip: .loopback, port: 0))
        let (isConnected, gate) = (Watched(false), DispatchSemaphore(value: 0))
        let (performed, losses) = (Watched<[Int]>([]), Watched(0))
        let ends = Watched<[OutgoingEnd]>([])
        let target = OutgoingTarget(host: "127.0.0.1", port: port.localAddress.port, isSecure: false) { _ in
            true
        }
        stream = try OutgoingStream<Tally>(
            to: target, name: "test",
            make: { _ in
                isConnected.change { $0 = true }
                gate.wait()
                return Tally(performed, losses)
            },
            ended: { end in ends.change { $0.append(end) } })
        self.port = port
        self.isConnected = isConnected
        self.gate = gate
        self.performed = performed
        self.losses = losses
        self.ends = ends
    }

    deinit { gate.signal() }

    func waitUntilConnected() async throws { try await isConnected.wait { $0 } }

    func goOn() { gate.signal() }
}

@Suite(.timeLimit(.minutes(5))) struct `Commands to an outgoing stream` {
    @Test func `wait in order while they cannot be performed, as many as may`() async throws {
        let limit = OutgoingStream<Tally>.commandLimit
        let held = try HeldStream()
        try await held.waitUntilConnected()
        for number in 0..<(limit + 50) { held.stream.tell(number) }
        held.goOn()
        try await held.performed.wait { $0.count >= limit }
        // There is room again.
        held.stream.tell(7)
        try await held.performed.wait { $0.count > limit }
        let expected = Array(0..<limit) + [7]
        #expect(held.performed.value == expected)
        held.stream.stop()
        try await held.ends.wait { $0 == [.over] }
        #expect(held.losses.value == 1)
    }

    @Test func `are not performed once the stream was stopped before`() async throws {
        let held = try HeldStream()
        try await held.waitUntilConnected()
        held.stream.tell(1)
        held.stream.stop()
        held.stream.tell(2)
        held.goOn()
        try await held.ends.wait { $0 == [.over] }
        #expect(held.performed.value.isEmpty && held.losses.value == 1)
    }

    @Test func `end the stream when they end the conversation`() async throws {
        let held = try HeldStream()
        try await held.waitUntilConnected()
        held.goOn()
        held.stream.tell(3)
        held.stream.tell(-1)
        try await held.ends.wait { !$0.isEmpty }
        #expect(held.ends.value == [.over])
        #expect(held.performed.value == [3, -1] && held.losses.value == 1)
        // Nobody is there any more to perform it.
        held.stream.tell(4)
        held.stream.stop()
        #expect(held.performed.value == [3, -1])
    }
}
