import Base

/// Puts one input's time stamps on the server's clock, so that tracks of one programme go together.
///
/// Sender reports tell when media was captured; until one came, the packet that was on its way for the shortest time
/// stands for all. Small differences are made up for bit by bit, because players do not like leaps in sound.
struct InputClock {
    /// In nanoseconds; a difference that is heard or seen.
    private static let tolerance: Int64 = 5_000_000
    private static let step: Int64 = 500_000
    private static let leap: Int64 = 500_000_000
    /// Nothing is on its way, or kept for those who come later, for longer.
    private static let credible = Duration.seconds(10)

    /// Ticks a second.
    private let rate: Int64
    private var epoch: UInt32?
    private var last: UInt32 = 0
    /// Of `last`, counted on over its wrap since the epoch began.
    private var ticks: Int64 = 0
    /// From the time that `ticks` say to the server's, in nanoseconds.
    private var offset: Int64?
    /// Whether the offset is what the sender says.
    private(set) var isCertain = false

    init(rate: Int64) {
        self.rate = rate
    }

    /// Takes notice of a packet.
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
        // What a publisher says of its clock need not be true.
        let told = captured.flatMap { (arrival - $0).magnitude <= Self.credible ? $0 : nil }
        correct(to: (told ?? arrival).nanoseconds &- nanoseconds(own), isCertain: told != nil)
        if (arrival - time(of: own)).magnitude > Self.credible {
            offset = arrival.nanoseconds &- nanoseconds(own)
        }
    }

    /// The next packet is another clock's.
    mutating func forget() {
        epoch = nil
    }

    /// Whether a packet of this epoch follows what came before.
    func isNew(_ epoch: UInt32) -> Bool { self.epoch != nil && self.epoch != epoch }

    /// For `time(of:)`; valid until the next epoch.
    func ticks(of timestamp: UInt32) -> Int64 { ticks + Int64(Int32(bitPattern: timestamp &- last)) }

    func time(of ticks: Int64) -> MonotonicTime {
        MonotonicTime(nanoseconds: (offset ?? 0) &+ nanoseconds(ticks))
    }

    private mutating func correct(to target: Int64, isCertain sure: Bool) {
        guard let offset, isCertain || !sure else {
            offset = target
            isCertain = sure
            return
        }
        let difference = target &- offset
        if !sure {
            // Nothing arrives before it was sent.
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

/// Puts the packets of a sound input in order; what is late for too long is left out.
struct PacketOrder {
    static let patience = Duration.milliseconds(120)
    private static let limit = 256

    private var waiting: [Int64: InputPacket] = [:]
    private var epoch: UInt32?
    private var next: Int64?

    /// - Returns: what comes now, in order.
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
