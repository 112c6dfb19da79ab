import Base
import Dispatch
import SCTP
import Synchronization
import TestTraits
import Testing
import Wire

/// What the threads of a server do: each owns associations, all of one stack, on the system's clock.
@Suite(.sctpTurn) struct AssociationsOnSeveralThreads {
    /// Packets on their way to a thread.
    private final class Mailbox: Sendable {
        private let packets = Mutex<[[UInt8]]>([])
        private let signal = DispatchSemaphore(value: 0)

        func put(_ new: [[UInt8]]) {
            guard !new.isEmpty else { return }
            packets.withLock { $0 += new }
            signal.signal()
        }

        /// At once if there are some, else as soon as some come, or when something else is due.
        func take(until due: MonotonicTime) -> [[UInt8]] {
            _ = signal.wait(timeout: DispatchTime(uptimeNanoseconds: UInt64(due.nanoseconds)))
            return packets.withLock { packets in
                defer { packets.removeAll() }
                return packets
            }
        }
    }

    private static func now() -> MonotonicTime {
        MonotonicTime(nanoseconds: Int64(DispatchTime.now().uptimeNanoseconds))
    }

    private static func text(_ number: Int) -> [UInt8] { Array("message \(number)".utf8) }

    /// Sends `count` messages and reads until as many came.
    private static func converse(_ inbox: Mailbox, _ outbox: Mailbox, count: Int) throws -> [[UInt8]] {
        let association = try SCTPAssociation(at: now())
        for number in 0..<count {
            try association.send(SCTPMessage(stream: 1, payload: 51, bytes: text(number)), at: now())
        }
        var received: [[UInt8]] = []
        let end = now() + .seconds(60)
        // Some time longer than needed, so that the other side gets its acknowledgements.
        while received.count < count || association.deadline != nil, now() < end {
            outbox.put(association.takeOutput())
            for packet in inbox.take(until: association.deadline ?? end) {
                association.receive(packet.span, at: now())
            }
            if let due = association.deadline, due <= now() { association.advance(to: now()) }
            for case .message(let message) in association.takeEvents() { received.append(message.bytes) }
        }
        outbox.put(association.takeOutput())
        return received
    }

    /// Runs each on a thread of its own and waits for all.
    private func runTogether(_ work: [@Sendable () -> Void]) async {
        await withTaskGroup(of: Void.self) { group in
            for (number, work) in work.enumerated() {
                group.addTask {
                    await withCheckedContinuation { continuation in
                        DispatchQueue(label: "association \(number)").async {
                            work()
                            continuation.resume()
                        }
                    }
                }
            }
        }
    }

    @Test func `talk to each other`() async {
        let (toLeft, toRight) = (Mailbox(), Mailbox())
        let left = Mutex<[[UInt8]]>([])
        let right = Mutex<[[UInt8]]>([])
        await runTogether([
            { left.withLock { $0 = (try? Self.converse(toLeft, toRight, count: 200)) ?? [] } },
            { right.withLock { $0 = (try? Self.converse(toRight, toLeft, count: 200)) ?? [] } },
        ])
        let expected = (0..<200).map(Self.text)
        #expect(left.withLock { $0 } == expected)
        #expect(right.withLock { $0 } == expected)
    }

    @Test func `come and go while others talk`() async {
        let (toLeft, toRight) = (Mailbox(), Mailbox())
        let counts = Mutex<[Int]>([])
        let churned = Mutex(0)
        let churn: @Sendable () -> Void = {
            for seed in 0..<40 {
                guard let pair = try? AssociationPair(seed: UInt64(seed)), pair.establish(),
                    (try? pair.left.send(
                        SCTPMessage(stream: 0, payload: 53, bytes: [1, 2, 3]), at: pair.now)) != nil
                else { continue }
                if pair.run(until: { !pair.rightMessages.isEmpty }) { churned.withLock { $0 += 1 } }
                pair.left.close()
            }
        }
        let talk: @Sendable (Mailbox, Mailbox) -> Void = { inbox, outbox in
            let received = (try? Self.converse(inbox, outbox, count: 100)) ?? []
            counts.withLock { $0.append(received.count) }
        }
        await runTogether([{ talk(toLeft, toRight) }, { talk(toRight, toLeft) }, churn, churn])
        #expect(counts.withLock { $0 } == [100, 100])
        #expect(churned.withLock { $0 } == 80)
    }
}
