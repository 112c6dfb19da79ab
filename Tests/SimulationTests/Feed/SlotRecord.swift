import Base
import Wire

/// All that came in one slot, in the order in which the server numbered it.
///
/// Tells where one stream followed another, and whether a decoder could have followed.
struct SlotRecord {
    private struct Packet {
        let source: Int
        let timestamp: UInt32
        let startsKeyFrame: Bool
        let time: MonotonicTime
    }

    let kind: MediaKind
    private var packets: [Int64: Packet] = [:]
    private var first = Int64.max
    private(set) var newest = Int64.min
    private(set) var faults: [String] = []
    /// Changes of the stream of which both sides came.
    private(set) var switches = 0

    /// Time stamps follow the time that passed; so much more, in milliseconds, replays may need, and the network may
    /// have held up what came before.
    private static let allowance: Int64 = 400

    init(kind: MediaKind) {
        self.kind = kind
    }

    mutating func add(_ arrival: StageClient.Arrival) {
        let number = arrival.sequenceNumber
        guard packets[number] == nil else { return }
        packets[number] = Packet(
            source: arrival.source, timestamp: arrival.timestamp, startsKeyFrame: arrival.startsKeyFrame,
            time: arrival.time)
        first = min(first, number)
        newest = max(newest, number)
        check(after: number - 1)
        check(after: number)
    }

    /// Numbers that never came, of those between the first and the newest.
    var missing: Int { packets.isEmpty ? 0 : Int(newest - first) + 1 - packets.count }

    /// What follows `number`, if both are there.
    private mutating func check(after number: Int64) {
        guard let before = packets[number], let next = packets[number + 1] else { return }
        let step = Int32(bitPattern: next.timestamp &- before.timestamp)
        if step < 0 { faults.append("time goes back by \(-step) ticks after \(number)") }
        guard before.source != next.source else { return }
        switches += 1
        if kind == .video, !next.startsKeyFrame {
            faults.append("\(number + 1) begins a stream without a key frame")
        }
        if step == 0 { faults.append("time stands still between two streams after \(number)") }
        let passed = max(next.time.nanoseconds(since: before.time) / 1_000_000, 0) + Self.allowance
        let rate: Int64 = kind == .video ? 90 : 48
        if Int64(step) > passed * rate {
            faults.append(
                "time leaps by \(Int64(step) / rate) ms in \(passed - Self.allowance) ms after \(number)")
        }
    }
}
