import RostrumClient
import TestSupport

/// Stands in for a media stack: its connections do what a test says.
final class FakeMedia: MediaEngine {
    struct Failure: Error {}

    /// Where a connection fails.
    enum Fault: Sendable {
        case making, offer, answer
    }

    final class Connection: MediaConnection {
        let events: AsyncStream<MediaEvent>
        let packets: AsyncStream<MediaPacket>
        private let eventContinuation: AsyncStream<MediaEvent>.Continuation
        private let packetContinuation: AsyncStream<MediaPacket>.Continuation
        private let fault: Fault?
        let lines: [MediaLine]
        let answer = Watched<String?>(nil)
        let sent = Watched<[MediaPacket]>([])
        let said = Watched<[String]>([])
        let isClosed = Watched(false)

        init(_ lines: [MediaLine], fault: Fault?) {
            (events, eventContinuation) = AsyncStream<MediaEvent>.makeStream(
                bufferingPolicy: .bufferingNewest(64))
            (packets, packetContinuation) = AsyncStream<MediaPacket>.makeStream(
                bufferingPolicy: .bufferingNewest(64))
            self.lines = lines
            self.fault = fault
        }

        func makeOffer() async throws -> String {
            if fault == .offer { throw Failure() }
            return "an offer"
        }

        func accept(answer: String) async throws {
            if fault == .answer { throw Failure() }
            self.answer.change { $0 = answer }
        }

        func send(_ packet: MediaPacket) async { sent.change { $0.append(packet) } }
        func say(_ message: String) async throws { said.change { $0.append(message) } }

        func close() async {
            isClosed.change { $0 = true }
            eventContinuation.finish()
            packetContinuation.finish()
        }

        func tell(_ event: MediaEvent) { eventContinuation.yield(event) }
        func deliver(_ packet: MediaPacket) { packetContinuation.yield(packet) }
    }

    /// In the order in which they were made.
    let made = Watched<[Connection]>([])
    private let fault: Fault?

    init(fault: Fault? = nil) {
        self.fault = fault
    }

    func makeConnection(_ lines: [MediaLine]) async throws -> any MediaConnection {
        if fault == .making { throw Failure() }
        let connection = Connection(lines, fault: fault)
        made.change { $0.append(connection) }
        return connection
    }

    /// The connection with this number, from 0 on, once there is one.
    func connection(_ number: Int) async throws -> Connection {
        try await made.wait { $0.count > number }
        return made.value[number]
    }
}
