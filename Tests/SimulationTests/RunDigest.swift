import Base
import Forwarding
import SimulatedLibraries
import Synchronization
import TestSupport
import Wire

/// All that happened in a simulation, as one number: the same seed has to give the same.
///
/// Every datagram with its time, both addresses and its bytes; every command that a worker was given, and every event
/// that it told. Of data channels only the lengths count: usrsctp cannot be told what to take for random.
final class RunDigest: Sendable {
    let seed: UInt64
    private let digest: Atomic<UInt64>
    private let time = Atomic<Int64>(0)
    private let datagrams = Atomic<Int>(0)

    /// Tells the running test of the simulation, so that a failure names it.
    init(seed: UInt64) {
        self.seed = seed
        digest = Atomic(seed)
        SimulationLog.current?.append(self)
    }

    var value: UInt64 { digest.load(ordering: .relaxed) }

    var description: String {
        let seconds = Double(time.load(ordering: .relaxed)) / 1e9
        return """
            seed \(seed), digest \(String(value, radix: 16)) of \(datagrams.load(ordering: .relaxed)) datagrams until \
            \(seconds) s
            """
    }

    // MARK: What happens

    func note(_ datagram: SimulatedNetwork.Datagram, at now: MonotonicTime) {
        datagrams.add(1, ordering: .relaxed)
        let (source, destination) = (datagram.source, datagram.destination)
        let head = (
            now.nanoseconds, source.ip.high, source.ip.low, UInt64(source.port), destination.ip.high,
            destination.ip.low, UInt64(destination.port)
        )
        withUnsafeBytes(of: head) { add($0) }
        time.store(now.nanoseconds, ordering: .relaxed)
        let bytes = datagram.bytes
        bytes.withUnsafeBytes { bytes in
            var start = 0
            while let end = Self.endOfChannelRecord(in: bytes, from: start) {
                add(UnsafeRawBufferPointer(rebasing: bytes[start..<start + Self.recordHeader]))
                start = end
            }
            add(UnsafeRawBufferPointer(rebasing: bytes[start...]))
        }
    }

    /// Type, version, epoch, sequence number and length (RFC 6347 §4.1).
    private static let recordHeader = 13
    /// `application_data`.
    private static let channelRecord: UInt8 = 23

    private static func endOfChannelRecord(in bytes: UnsafeRawBufferPointer, from start: Int) -> Int? {
        guard start + recordHeader <= bytes.count, bytes[start] == channelRecord else { return nil }
        let end = start + recordHeader + Int(bytes[start + 11]) << 8 + Int(bytes[start + 12])
        return end <= bytes.count ? end : nil
    }

    func note(_ command: WorkerCommand, of worker: Int, at now: MonotonicTime) {
        let text =
            switch command {
            case .open(let opening): "open \(opening.id) \(opening.order)"
            case .restartICE(let id, _, _): "restart \(id)"
            case .attach(let id, let mid, let track, let height):
                "attach \(id) \(mid) \(Self.name(track)) \(height ?? -1)"
            case .setProgramme(let stream, let tracks): "programme \(stream) \(tracks.map(Self.name))"
            case .sendControl(let id, let message): "say \(id) \(message.bytes)"
            case .openTap, .openInjection, .inject:
                "\(Mirror(reflecting: command).children.first?.label ?? "")"
            default: "\(command)"
            }
        note("\(worker) \(text)", at: now)
    }

    func note(_ event: WorkerEvent, of worker: Int, at now: MonotonicTime) {
        let text =
            switch event {
            case .published(let id, let tracks): "published \(id) \(tracks.map(Self.name))"
            case .injected(let id, let tracks): "injected \(id) \(tracks.map(Self.name))"
            case .renditionWanted(let id, let track, let isWanted):
                "rendition \(id) \(Self.name(track)) \(isWanted)"
            case .controlMessage(let id, let message): "hear \(id) \(message.bytes)"
            default: "\(event)"
            }
        note("\(worker) \(text)", at: now)
    }

    private static func name(_ track: PublishedTrack?) -> String {
        track.map { "\($0.key.worker)/\($0.key.track)" } ?? "-"
    }

    func note(_ text: String, at now: MonotonicTime) {
        time.store(now.nanoseconds, ordering: .relaxed)
        withUnsafeBytes(of: now.nanoseconds) { add($0) }
        var text = text
        text.withUTF8 { add(UnsafeRawBufferPointer($0)) }
    }

    /// One thread at a time notes what happens in a simulation.
    private func add(_ bytes: UnsafeRawBufferPointer) {
        digest.store(simulated_digest(value, bytes.baseAddress, bytes.count), ordering: .relaxed)
    }
}

/// The simulations of one test.
final class SimulationLog: Sendable {
    @TaskLocal static var current: SimulationLog?

    private let digests = Mutex<[RunDigest]>([])

    func append(_ digest: RunDigest) {
        digests.withLock { $0.append(digest) }
    }

    var all: [RunDigest] { digests.withLock { $0 } }
}
