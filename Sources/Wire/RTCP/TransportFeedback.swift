/// Which packets of a transport arrived, and when.
///
/// Sequence numbers are those of the transport-wide extension, which counts over all streams of a connection.
/// - Source: draft-holmer-rmcat-transport-wide-cc-extensions-01 §3.1.
package struct TransportFeedback: Equatable, Sendable {
    /// A packet that has come.
    package struct Arrival: Equatable, Sendable {
        /// Transport-wide, not that of its RTP header.
        package var sequenceNumber: UInt16
        /// In units of 250 µs on the receiver's clock, whose origin is arbitrary; differences between packets
        /// with one feedback sender count, and wrap with the 24-bit reference time after 12 days.
        package var ticks: Int64

        package init(sequenceNumber: UInt16, ticks: Int64) {
            self.sequenceNumber = sequenceNumber
            self.ticks = ticks
        }
    }

    static let format: UInt8 = 15
    /// Of one tick of an arrival time, in nanoseconds.
    package static let nanosecondsPerTick: Int64 = 250_000
    /// Of one step of the reference time, which is 64 ms.
    static let ticksPerReference: Int64 = 256

    /// The receiver that reports.
    package var senderSSRC: UInt32
    /// One of the sender's streams: libwebrtc drops feedback that names none.
    package var mediaSSRC: UInt32
    /// The first packet this feedback speaks of.
    package var baseSequenceNumber: UInt16
    /// How many packets it speaks of; those without an arrival are missing.
    package var statusCount: Int
    /// Counts the feedback packets, so that a lost one is noticed.
    package var feedbackCount: UInt8
    /// What the first arrival is measured from, in units of 64 ms; 24 bits, signed.
    package var referenceTime: Int32
    /// In the order of their sequence numbers.
    package var arrivals: [Arrival]

    /// - Parameter arrivals: in the order of their sequence numbers, all of them within `statusCount` of the
    ///   base; neighbours and the reference time at most 8 s apart. `TransportFeedbackBuilder` sees to that.
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
    /// A status chunk that covers nothing, or has a symbol that is not defined.
    package static var transportFeedbackStatus: Self { .init("rtcp.twcc.status") }
}
