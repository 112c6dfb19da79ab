import Synchronization

/// Packets that usrsctp wants sent, by the address number of their association.
///
/// Filled by the library's callback, on whatever thread drives its timers, and drained by the thread that owns the
/// association.
final class SCTPOutboxes: Sendable {
    static let shared = SCTPOutboxes()

    private struct Outbox {
        var packets: [[UInt8]] = []
        var bytes = 0
    }

    /// More waits for nobody: it is dropped like a packet that the network lost.
    static let maximumBytes = 1 << 20

    private let outboxes = Mutex<[UInt: Outbox]>([:])

    private init() {}

    /// What `usrsctp_init_nothreads` is given; zero says that the packet is on its way.
    static let transmit:
        @convention(c) (UnsafeMutableRawPointer?, UnsafeMutableRawPointer?, Int, UInt8, UInt8) -> CInt = {
            address, packet, length, _, _ in
            unsafe shared.append(
                Array(UnsafeRawBufferPointer(start: packet, count: packet == nil ? 0 : length)),
                to: UInt(bitPattern: address))
            return 0
        }

    func open(_ address: UInt) {
        outboxes.withLock { $0[address] = Outbox() }
    }

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

    func isEmpty(_ address: UInt) -> Bool {
        outboxes.withLock { $0[address]?.packets.isEmpty ?? true }
    }

    func take(_ address: UInt) -> [[UInt8]] {
        outboxes.withLock { outboxes in
            guard let packets = outboxes[address]?.packets, !packets.isEmpty else { return [] }
            outboxes[address] = Outbox()
            return packets
        }
    }
}
