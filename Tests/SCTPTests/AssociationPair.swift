import Base
import SCTP
import TestSupport
import Wire

/// Two associations and a network between them, in virtual time.
///
/// Other tests that run beside drive the same timers of usrsctp, and it measures round trips on the system's clock, so
/// that repetitions may come earlier than this clock says: nothing here counts on their number.
final class AssociationPair {
    struct Network {
        var delay = Duration.milliseconds(10)
        /// Added to the delay at random, so that packets overtake each other.
        var jitter = Duration.zero
        var loss = 0.0
        var duplication = 0.0
    }

    private struct Packet {
        let bytes: [UInt8]
        let toLeft: Bool
        let at: MonotonicTime
    }

    let left: SCTPAssociation
    let right: SCTPAssociation
    private(set) var now = MonotonicTime.zero
    var network: Network
    var random: SeededGenerator
    private(set) var longestPacket = 0
    private(set) var packetCount = 0
    private(set) var leftEvents: [SCTPAssociation.Event] = []
    private(set) var rightEvents: [SCTPAssociation.Event] = []
    private var packets: [Packet] = []

    /// - Parameter rightConfiguration: nil for that of the left side.
    init(
        _ network: Network = Network(), seed: UInt64 = 1,
        configuration: SCTPConfiguration = SCTPConfiguration(), rightConfiguration: SCTPConfiguration? = nil
    ) throws {
        self.network = network
        random = SeededGenerator(seed: seed)
        let timeline = SCTPTimeline()
        left = try SCTPAssociation(configuration: configuration, timeline: timeline, at: now)
        right = try SCTPAssociation(
            configuration: rightConfiguration ?? configuration, timeline: timeline, at: now)
    }

    /// Delivers, in steps of 5 ms, until `isDone` or for as long as `limit`.
    @discardableResult
    func run(for limit: Duration = .seconds(60), until isDone: () -> Bool = { false }) -> Bool {
        let end = now + limit
        collect()
        while !isDone() {
            guard now < end else { return false }
            now = now + .milliseconds(5)
            deliver()
            if let due = left.deadline, due <= now { left.advance(to: now) }
            if let due = right.deadline, due <= now { right.advance(to: now) }
            collect()
        }
        return true
    }

    private func deliver() {
        let due = packets.filter { $0.at <= now }.sorted { $0.at < $1.at }
        packets.removeAll { $0.at <= now }
        for packet in due {
            let receiver = packet.toLeft ? left : right
            receiver.receive(packet.bytes.span, at: now)
        }
    }

    private func collect() {
        leftEvents += left.takeEvents()
        rightEvents += right.takeEvents()
        for packet in left.takeOutput() { transmit(packet, toLeft: false) }
        for packet in right.takeOutput() { transmit(packet, toLeft: true) }
    }

    private func transmit(_ bytes: [UInt8], toLeft: Bool) {
        longestPacket = max(longestPacket, bytes.count)
        packetCount += 1
        if Double.random(in: 0..<1, using: &random) < network.loss { return }
        let copies = Double.random(in: 0..<1, using: &random) < network.duplication ? 2 : 1
        for _ in 0..<copies {
            let jitter = Int64.random(in: 0...max(0, network.jitter.wholeNanoseconds), using: &random)
            packets.append(
                Packet(bytes: bytes, toLeft: toLeft, at: now + network.delay + .nanoseconds(jitter)))
        }
    }

    var isEstablished: Bool {
        leftEvents.contains(.established(streams: 256)) && rightEvents.contains(.established(streams: 256))
    }

    func establish() -> Bool { run { isEstablished } }

    var rightMessages: [SCTPMessage] { Self.messages(rightEvents) }
    var leftMessages: [SCTPMessage] { Self.messages(leftEvents) }

    private static func messages(_ events: [SCTPAssociation.Event]) -> [SCTPMessage] {
        events.compactMap { event in
            if case .message(let message) = event { message } else { nil }
        }
    }
}
