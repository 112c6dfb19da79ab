import Base

/// Builds reports by RTP sequence number from arrivals, as a receiver sends them.
///
/// Reports each packet once: as arrived, or as missing if a later packet of its stream arrived before it. If a
/// packet arrives after it was reported missing, that packet and all that follow it are reported again. Memory is
/// bounded: streams above the limit and packets too far back are not reported.
/// - Source: RFC 8888 §3.1.
package struct CongestionControlFeedbackBuilder: Sendable {
    /// Most streams that are reported.
    package static let maximumStreams = 32
    /// Packets of one stream that are remembered, counted back from the newest.
    package static let capacity: Int64 = 1_024
    /// Most packets in one report, so that it fits into a datagram together with other packets.
    package static let maximumMetrics = 400

    private struct Stream {
        let ssrc: UInt32
        var numbers = SequenceUnwrapper()
        /// Arrival times by sequence number; at most twice `capacity`.
        var times: [Int64: MonotonicTime] = [:]
        /// The first packet in the next report; nil if there is nothing new.
        var start: Int64?
        /// The first packet after those already reported.
        var next: Int64?

        mutating func record(_ sequenceNumber: UInt16, at now: MonotonicTime) {
            let number = numbers.unwrap(sequenceNumber)
            let oldest = (numbers.highest ?? number) &- capacity
            guard number > oldest, times[number] == nil else { return }
            times[number] = now
            if times.count > Int(2 * capacity) { times = times.filter { $0.key > oldest } }
            // Packets missing before it are reported as well, unless the source has jumped.
            let first = max(min(next ?? number, number), oldest &+ 1)
            start = min(start ?? first, first)
        }
    }

    /// The receiver that reports.
    package let senderSSRC: UInt32
    private var streams: [Stream] = []

    /// - Parameter senderSSRC: the SSRC of the receiver that reports.
    package init(senderSSRC: UInt32) {
        self.senderSSRC = senderSSRC
    }

    /// Whether there is anything to report.
    package var hasNews: Bool { streams.contains { $0.start != nil } }

    /// Records an authenticated packet; of duplicates the first counts.
    package mutating func record(_ sequenceNumber: UInt16, of ssrc: UInt32, at now: MonotonicTime) {
        if let index = streams.firstIndex(where: { $0.ssrc == ssrc }) {
            streams[index].record(sequenceNumber, at: now)
        } else if streams.count < Self.maximumStreams {
            streams.append(Stream(ssrc: ssrc))
            streams[streams.count - 1].record(sequenceNumber, at: now)
        }
    }

    /// Builds the reports on everything new.
    package mutating func build(at now: MonotonicTime) -> [CongestionControlFeedback] {
        let time = Self.ticks(of: now)
        var reports: [CongestionControlFeedback] = []
        var draft = CongestionControlFeedback(
            senderSSRC: senderSSRC, streams: [], reportTime: UInt32(truncatingIfNeeded: time))
        var room = Self.maximumMetrics
        for index in streams.indices {
            guard let start = streams[index].start, let end = streams[index].numbers.highest else { continue }
            var first = max(start, end &- Self.capacity &+ 1)
            while first <= end {
                if room <= 0 {
                    reports.append(draft)
                    draft.streams = []
                    room = Self.maximumMetrics
                }
                let last = min(end, first &+ Int64(room) &- 1)
                let metrics = (first...last).map { metric(of: $0, in: streams[index], before: time) }
                draft.streams.append(
                    .init(
                        ssrc: streams[index].ssrc, firstSequenceNumber: UInt16(truncatingIfNeeded: first),
                        metrics: metrics))
                // The stream's header takes as much room as four packets.
                room -= metrics.count + 4
                first = last &+ 1
            }
            streams[index].start = nil
            streams[index].next = end &+ 1
        }
        if !draft.streams.isEmpty { reports.append(draft) }
        return reports
    }

    /// The report on one packet; its time is relative to that of the report.
    private func metric(
        of number: Int64, in stream: Stream, before time: Int64
    ) -> CongestionControlFeedback.Metric {
        guard let arrival = stream.times[number] else { return .missing }
        let age = (time &- Self.ticks(of: arrival)) / CongestionControlFeedback.ticksPerOffset
        return .init(offset: age < 0 ? nil : UInt16(clamping: age))
    }

    private static func ticks(of time: MonotonicTime) -> Int64 {
        let (seconds, rest) = time.nanoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
        return seconds &* CongestionControlFeedback.ticksPerSecond &+ rest
            &* CongestionControlFeedback.ticksPerSecond / 1_000_000_000
    }
}
