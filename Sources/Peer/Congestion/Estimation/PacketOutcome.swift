import Base

/// What became of one packet that was sent, as feedback of the receiver tells.
package struct PacketOutcome: Equatable, Sendable {
    /// When it left, on our clock.
    package var sent: MonotonicTime
    /// In bytes, with UDP and IP headers.
    package var size: Int
    /// When it came, in nanoseconds on the receiver's clock, whose origin is arbitrary; nil for one that is lost.
    package var arrival: Int64?
    /// Number of the probe that it was a part of; nil for what would have been sent anyway.
    package var probe: UInt8?
    /// It had been told as lost before.
    package var isLate: Bool
    /// Bytes that left since what was told of before it, of which nothing was told: that feedback got lost.
    package var untold: Int

    package init(
        sent: MonotonicTime, size: Int, arrival: Int64?, probe: UInt8? = nil, isLate: Bool = false,
        untold: Int = 0
    ) {
        self.sent = sent
        self.size = size
        self.arrival = arrival
        self.probe = probe
        self.isLate = isLate
        self.untold = untold
    }
}

/// Packets to send at a given rate, to see whether the path takes it.
package struct Probe: Equatable, Sendable {
    /// Goes with each of its packets, and comes back in `PacketOutcome.probe`; wraps around.
    package var number: UInt8
    /// Bits a second at which its packets leave.
    package var bitrate: Int
    /// In all, with UDP and IP headers; at least five packets of 1,200 bytes.
    package var bytes: Int

    package init(number: UInt8, bitrate: Int, bytes: Int) {
        self.number = number
        self.bitrate = bitrate
        self.bytes = bytes
    }
}
