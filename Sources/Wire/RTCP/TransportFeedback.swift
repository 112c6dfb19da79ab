/// Which packets of a transport arrived, and when.
///
/// Sequence numbers are those of the transport-wide header extension, which run over all streams of a connection.
/// - Source: draft-holmer-rmcat-transport-wide-cc-extensions-01 §3.1.
package struct TransportFeedback: Equatable, Sendable {
    /// A packet that arrived.
    package struct Arrival: Equatable, Sendable {
        /// The transport-wide number, not that of the RTP header.
        package var sequenceNumber: UInt16
        /// In units of 250 µs on the receiver's clock, whose origin is arbitrary.
        ///
        /// Only differences between packets of one feedback sender are meaningful; they wrap with the 24-bit
        /// reference time after 12 days.
        package var ticks: Int64

        package init(sequenceNumber: UInt16, ticks: Int64) {
            self.sequenceNumber = sequenceNumber
            self.ticks = ticks
        }
    }

    static let format: UInt8 = 15
    /// Length of one tick of an arrival time, in nanoseconds.
    package static let nanosecondsPerTick: Int64 = 250_000
    /// Ticks in one step of the reference time, which is 64 ms.
    static let ticksPerReference: Int64 = 256

    /// The receiver that reports.
    package var senderSSRC: UInt32
    /// One of the sender's streams: libwebrtc drops feedback without one.
    package var mediaSSRC: UInt32
    /// The first packet that this feedback covers.
    package var baseSequenceNumber: UInt16
    /// How many packets it covers; those without an arrival are missing.
    package var statusCount: Int
    /// Counts the feedback packets, so that a lost one can be detected.
    package var feedbackCount: UInt8
    /// What the first arrival is relative to, in units of 64 ms; 24 bits, signed.
    package var referenceTime: Int32
    /// In the order of their sequence numbers.
    package var arrivals: [Arrival]

    /// - Parameter arrivals: in the order of their sequence numbers, all of them within `statusCount` of the base;
    ///   neighbors and the reference time at most 8 s apart. `TransportFeedbackBuilder` ensures that.
    init(
        senderSSRC: UInt32, mediaSSRC: UInt32, baseSequenceNumber: UInt16, statusCount: Int,
        feedbackCount: UInt8, referenceTime: Int32, arrivals: [Arrival]
    ) {
        self.senderSSRC = senderSSRC
        self.mediaSSRC = mediaSSRC
        self.baseSequenceNumber = baseSequenceNumber
        self.statusCount = statusCount
        self.feedbackCount = feedbackCount
        self.referenceTime = referenceTime
        self.arrivals = arrivals
    }

    init(_ body: Span<UInt8>) throws(WireError) {
        senderSSRC = try body.uint32(at: 0)
        mediaSSRC = try body.uint32(at: 4)
        baseSequenceNumber = try body.uint16(at: 8)
        statusCount = try Int(body.uint16(at: 10))
        let reference = try body.uint32(at: 12)
        referenceTime = Int32(bitPattern: reference) >> 8
        feedbackCount = UInt8(truncatingIfNeeded: reference)

        var received: [(index: Int, isLarge: Bool)] = []
        var offset = 16
        var index = 0
        while index < statusCount {
            let chunk = StatusChunk(word: try body.uint16(at: offset))
            offset &+= 2
            index = try chunk.collect(from: index, upTo: statusCount, limit: body.count, into: &received)
        }

        arrivals = []
        arrivals.reserveCapacity(received.count)
        var ticks = Int64(referenceTime) &* Self.ticksPerReference
        for (index, isLarge) in received {
            if isLarge {
                ticks &+= try Int64(Int16(bitPattern: body.uint16(at: offset)))
                offset &+= 2
            } else {
                ticks &+= try Int64(body.uint8(at: offset))
                offset &+= 1
            }
            let number = baseSequenceNumber &+ UInt16(truncatingIfNeeded: index)
            arrivals.append(Arrival(sequenceNumber: number, ticks: ticks))
        }
    }

    /// Appends the RTCP packet.
    ///
    /// Arrivals out of order, and those outside `statusCount`, are left out.
    package func append(to bytes: inout [UInt8]) {
        var symbols: [StatusSymbol] = []
        var deltas: [UInt8] = []
        var ticks = Int64(referenceTime) &* Self.ticksPerReference
        for arrival in arrivals {
            let index = Int(arrival.sequenceNumber &- baseSequenceNumber)
            guard index >= symbols.count, index < statusCount else { continue }
            while symbols.count < index { symbols.append(.notReceived) }
            let delta = arrival.ticks &- ticks
            ticks = arrival.ticks
            if delta >= 0, delta <= 255 {
                symbols.append(.smallDelta)
                deltas.append(UInt8(truncatingIfNeeded: delta))
            } else {
                symbols.append(.largeDelta)
                deltas.append(bigEndian: UInt16(bitPattern: Int16(clamping: delta)))
            }
        }
        while symbols.count < statusCount { symbols.append(.notReceived) }

        RTCPFrame.append(
            to: &bytes, type: RTCPFrame.transportSpecificFeedback, countOrFormat: Self.format
        ) { bytes in
            bytes.append(bigEndian: senderSSRC)
            bytes.append(bigEndian: mediaSSRC)
            bytes.append(bigEndian: baseSequenceNumber)
            bytes.append(bigEndian: UInt16(truncatingIfNeeded: symbols.count))
            bytes.append(bigEndian: UInt32(bitPattern: referenceTime) << 8 | UInt32(feedbackCount))
            StatusChunk.append(symbols, to: &bytes)
            bytes.append(contentsOf: deltas)
        }
    }
}

extension WireError.Field {
    /// A status chunk that covers no packets, or has an undefined symbol.
    package static var transportFeedbackStatus: Self { .init("rtcp.twcc.status") }
}
