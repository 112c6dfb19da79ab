import Base

/// Maps one input's time stamps to the server's clock, so that the tracks of a programme are in sync.
///
/// Sender reports give capture times. Until the first one, the packet with the least network delay is the reference.
/// Small differences are corrected gradually, because jumps are audible.
struct InputClock {
    /// Differences up to this, in nanoseconds, are imperceptible and not corrected.
    private static let tolerance: Int64 = 5_000_000
    /// Correction per packet, in nanoseconds.
    private static let step: Int64 = 500_000
    /// Differences beyond this, in nanoseconds, are corrected in one step.
    private static let leap: Int64 = 500_000_000
    /// Longest credible time between capture and arrival, caches included; other capture times are ignored.
    private static let credible = Duration.seconds(10)

    /// Ticks per second.
    private let rate: Int64
    private var epoch: UInt32?
    /// Highest time stamp so far.
    private var last: UInt32 = 0
    /// `last` relative to the beginning of the epoch, without its wrap.
    private var ticks: Int64 = 0
    /// Server time minus the time of `ticks`, in nanoseconds; nil before the first packet.
    private var offset: Int64?
    /// Whether the offset is based on capture times.
    private(set) var isCertain = false

    init(rate: Int64) {
        self.rate = rate
    }

    /// Notes a packet's time stamp, arrival and capture time.
    mutating func note(
        _ timestamp: UInt32, epoch: UInt32, arrival: MonotonicTime, captured: MonotonicTime?
    ) {
        if epoch != self.epoch {
            self.epoch = epoch
            last = timestamp
            ticks = 0
            offset = nil
            isCertain = false
        }
        let own = ticks(of: timestamp)
        if own > ticks {
            last = timestamp
            ticks = own
        }
        // Capture times come from the publisher and may be wrong.
        let told = captured.flatMap { (arrival - $0).magnitude <= Self.credible ? $0 : nil }
        correct(to: (told ?? arrival).nanoseconds &- nanoseconds(own), isCertain: told != nil)
        if (arrival - time(of: own)).magnitude > Self.credible {
            offset = arrival.nanoseconds &- nanoseconds(own)
        }
    }

    /// Notes that the next packet belongs to another clock.
    mutating func forget() {
        epoch = nil
    }

    /// Whether a packet of this epoch begins a new clock after an earlier one.
    func isNew(_ epoch: UInt32) -> Bool { self.epoch != nil && self.epoch != epoch }

    /// Ticks since the beginning of the epoch, for `time(of:)`; valid until the next epoch.
    func ticks(of timestamp: UInt32) -> Int64 { ticks + Int64(Int32(bitPattern: timestamp &- last)) }

    /// The server's time for a number of ticks.
    func time(of ticks: Int64) -> MonotonicTime {
        MonotonicTime(nanoseconds: (offset ?? 0) &+ nanoseconds(ticks))
    }

    /// Moves the offset towards `target`.
    /// - Parameter sure: whether `target` is based on a capture time.
    private mutating func correct(to target: Int64, isCertain sure: Bool) {
        guard let offset, isCertain || !sure else {
            offset = target
            isCertain = sure
            return
        }
        let difference = target &- offset
        if !sure {
            // A packet cannot arrive before it was sent, so the least delay is the best estimate.
            if !isCertain { self.offset = min(offset, target) }
        } else if difference.magnitude > Self.leap.magnitude {
            self.offset = target
        } else if difference.magnitude > Self.tolerance.magnitude {
            self.offset = offset &+ (difference > 0 ? Self.step : -Self.step)
        }
    }

    private func nanoseconds(_ ticks: Int64) -> Int64 {
        ticks / rate &* 1_000_000_000 &+ ticks % rate &* 1_000_000_000 / rate
    }
}

/// Orders the packets of an audio input; packets that are too late are dropped.
struct PacketOrder {
    /// How long a missing packet is waited for.
    static let patience = Duration.milliseconds(120)
    /// Most packets that wait for a missing one.
    private static let limit = 256

    private var waiting: [Int64: InputPacket] = [:]
    private var epoch: UInt32?
    /// Number of the next packet; nil before the first.
    private var next: Int64?

    /// Adds a packet.
    /// - Returns: packets that are next, in order.
    mutating func insert(_ packet: InputPacket, at now: MonotonicTime) -> [InputPacket] {
        if packet.epoch != epoch {
            epoch = packet.epoch
            waiting = [:]
            next = nil
        }
        if let next, packet.sequenceNumber < next { return [] }
        waiting[packet.sequenceNumber] = packet
        if next == nil { next = packet.sequenceNumber }
        return advance(to: now)
    }

    /// Gives up packets that have been missing for too long.
    /// - Returns: packets that are next, in order.
    mutating func advance(to now: MonotonicTime) -> [InputPacket] {
        var packets: [InputPacket] = []
        while let place = next, !waiting.isEmpty {
            if let packet = waiting.removeValue(forKey: place) {
                packets.append(packet)
                next = place &+ 1
                continue
            }
            let isLate = waiting.values.contains { now >= $0.arrival + Self.patience }
            guard isLate || waiting.count > Self.limit else { break }
            next = waiting.keys.min()
        }
        return packets
    }
}

extension Duration {
    fileprivate var magnitude: Duration { self < .zero ? .zero - self : self }
}
