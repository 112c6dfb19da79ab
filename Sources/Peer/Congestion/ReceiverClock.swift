import Base
import Wire

/// The clock of a client that tells of packets by their own sequence numbers.
///
/// Its reports wrap after 18 hours, and come in any order. Takes what strangers send: times may be anything.
/// - Source: RFC 8888 §3.1 (report timestamp, arrival time offset).
package struct ReceiverClock: Sendable {
    /// The latest time of a report, in units of 1/65,536 s; nil before the first.
    private var latest: Int64?

    package init() {}

    /// Takes in a report.
    /// - Returns: its time in units of 1/65,536 s, without wraps.
    package mutating func time(of report: CongestionControlFeedback) -> Int64 {
        guard let latest else {
            self.latest = Int64(report.reportTime)
            return Int64(report.reportTime)
        }
        let step = Int32(bitPattern: report.reportTime &- UInt32(truncatingIfNeeded: latest))
        let time = latest &+ Int64(step)
        self.latest = max(latest, time)
        return time
    }

    /// When a packet came, in nanoseconds on this clock; nil where that is not known.
    package static func arrival(
        _ metric: CongestionControlFeedback.Metric, toldAt time: Int64
    ) -> Int64? {
        guard let offset = metric.offset else { return nil }
        let ticks = time &- Int64(offset) &* CongestionControlFeedback.ticksPerOffset
        // 1,000,000,000 / 65,536, cut down; a clock that was driven to its end wraps.
        return ticks.multipliedReportingOverflow(by: 1_953_125).partialValue / 128
    }
}
