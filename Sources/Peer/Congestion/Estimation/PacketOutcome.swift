import Base

/// The fate of one sent packet, as the receiver's feedback reports it.
package struct PacketOutcome: Equatable, Sendable {
    /// How many packets had been sent on the path before it.
    package var number: Int64
    /// When it left, on our clock.
    package var sent: MonotonicTime
    /// In bytes, with UDP and IP headers.
    package var size: Int
    /// When it arrived, in nanoseconds on the receiver's clock, whose origin is arbitrary; nil if it was lost.
    package var arrival: Int64?
    /// Number of the probe that it belongs to; nil for ordinary traffic.
    package var probe: UInt8?
    /// Whether it had been reported lost before.
    package var isLate: Bool
    /// Bytes that left between the previously reported packet and this one, and were never reported: feedback got
    /// lost.
    package var untold: Int

    package init(
        number: Int64 = 0, sent: MonotonicTime, size: Int, arrival: Int64?, probe: UInt8? = nil,
        isLate: Bool = false, untold: Int = 0
    ) {
        self.number = number
        self.sent = sent
        self.size = size
        self.arrival = arrival
        self.probe = probe
        self.isLate = isLate
        self.untold = untold
    }
}

/// Packets to send at a given rate, to test whether the path takes it.
package struct Probe: Equatable, Sendable {
    /// Identifies the probe in `PacketOutcome.probe`; wraps around.
    package var number: UInt8
    /// Bits per second at which its packets leave.
    package var bitrate: Int
    /// Total size, with UDP and IP headers; at least five packets of 1,200 bytes.
    package var bytes: Int

    package init(number: UInt8, bitrate: Int, bytes: Int) {
        self.number = number
        self.bitrate = bitrate
        self.bytes = bytes
    }
}
