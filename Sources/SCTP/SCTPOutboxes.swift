import Synchronization

/// Packets that usrsctp wants to send, by the number that is their association's address.
///
/// The library's callback fills them on any thread that drives the timers; the thread that owns an association
/// empties its outbox.
final class SCTPOutboxes: Sendable {
    static let shared = SCTPOutboxes()

    private struct Outbox {
        var packets: [[UInt8]] = []
        var bytes = 0
    }

    /// Bytes that an outbox may hold; further packets are dropped, as if the network had lost them.
    static let maximumBytes = 1 << 20

    /// Locked for each packet and each look.
    ///
    /// The callback holds the stack's lock then; this one is always taken second.
    private let outboxes = Mutex<[UInt: Outbox]>([:])

    private init() {}

    /// The callback for `usrsctp_init_nothreads`; zero reports the packet as sent.
    static let transmit:
        @convention(c) (UnsafeMutableRawPointer?, UnsafeMutableRawPointer?, Int, UInt8, UInt8) -> CInt = {
            address, packet, length, _, _ in
            unsafe shared.append(
                Array(UnsafeRawBufferPointer(start: packet, count: packet == nil ? 0 : length)),
                to: UInt(bitPattern: address))
            return 0
        }

    /// Starts accepting packets for an address.
    func open(_ address: UInt) {
        outboxes.withLock { $0[address] = Outbox() }
    }

    /// Drops an address's packets and accepts no more.
    func close(_ address: UInt) {
        outboxes.withLock { $0[address] = nil }
    }

    private func append(_ packet: [UInt8], to address: UInt) {
        outboxes.withLock { outboxes in
            guard let bytes = outboxes[address]?.bytes, bytes + packet.count <= Self.maximumBytes else {
                return
            }
            outboxes[address]?.packets.append(packet)
            outboxes[address]?.bytes += packet.count
        }
    }

    /// Whether no packets wait; true also for an address that is not open.
    func isEmpty(_ address: UInt) -> Bool {
        outboxes.withLock { $0[address]?.packets.isEmpty ?? true }
    }

    /// Takes the waiting packets, in order.
    func take(_ address: UInt) -> [[UInt8]] {
        outboxes.withLock { outboxes in
            guard let packets = outboxes[address]?.packets, !packets.isEmpty else { return [] }
            outboxes[address] = Outbox()
            return packets
        }
    }
}
