import Base
import Wire

/// The clock of a client that reports each packet by its own sequence number.
///
/// Report timestamps wrap after 18 hours, and reports arrive in any order. The input is untrusted: times may have
/// any value.
/// - Source: RFC 8888 §3.1 (report timestamp, arrival time offset).
package struct ReceiverClock: Sendable {
    /// The latest report timestamp, in units of 1/65,536 s; nil before the first report.
    private var latest: Int64?

    package init() {}

    /// Unwraps the timestamp of a report.
    /// - Returns: the time in units of 1/65,536 s, without wraps.
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

    /// When a packet arrived, in nanoseconds on this clock; nil if the report does not contain it.
    package static func arrival(
        _ metric: CongestionControlFeedback.Metric, toldAt time: Int64
    ) -> Int64? {
        guard let offset = metric.offset else { return nil }
        let ticks = time &- Int64(offset) &* CongestionControlFeedback.ticksPerOffset
        // 1,953,125 / 128 is 1,000,000,000 / 65,536 in lowest terms; a clock driven to the end of its range wraps.
        return ticks.multipliedReportingOverflow(by: 1_953_125).partialValue / 128
    }
}
