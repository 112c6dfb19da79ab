import Base
import Crypto
import Peer

@testable import Net

/// A send batch with a socket of its own, and a kernel that answers as a test says.
final class Sender {
    let socket: DatagramSocket
    let kernel = Kernel()
    private var batch: SendBatch

    var counters: TrafficCounters { batch.counters }
    var isBlocked: Bool { batch.isBlocked }
    var capture: HeaderCapture? {
        get { batch.capture }
        set { batch.capture = newValue }
    }

    init(_ capacity: SendBatch.Capacity = .init()) throws {
        socket = try DatagramSocket(bind: TransportAddress(ip: .loopback, port: 0))
        batch = SendBatch(
            socket: socket, capacity: capacity, hashKey: 0x1234_5678_9ABC_DEF1, refuse: kernel.refuse)
    }

    func append(_ bytes: [UInt8], to destination: TransportAddress) {
        batch.append(bytes, to: destination)
    }

    func append<Failure: Error>(
        to destination: TransportAddress, capacity: Int,
        _ write: (inout MutableSpan<UInt8>) throws(Failure) -> Int
    ) throws(Failure) {
        try batch.append(to: destination, capacity: capacity, write)
    }

    func append(
        _ count: Int, to destination: TransportAddress, capacity: Int,
        _ write: (Int, inout MutableSpan<UInt8>) -> EncryptedPacket
    ) {
        batch.append(count, to: destination, capacity: capacity, write)
    }

    func flush(at now: MonotonicTime = .zero) { batch.flush(at: now) }
    func becameWritable() { batch.becameWritable(at: .zero) }
}

/// Says what the kernel is to answer; tests change it between flushes.
final class Kernel {
    /// An errno, or nil to let the message pass to the real kernel.
    var answer: (OutgoingMessage) -> Int32? = { _ in nil }
    private(set) var seen: [OutgoingMessage] = []

    func refuse(_ message: OutgoingMessage) -> Int32? {
        seen.append(message)
        return answer(message)
    }

    /// Refuses to cut messages into datagrams.
    func refuseSegmentation(with code: Int32) {
        answer = { $0.datagrams > 1 ? code : nil }
    }
}
