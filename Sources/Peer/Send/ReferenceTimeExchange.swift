import Base
import Wire

/// Measures round-trip times, for both ends, where one end sends no media.
///
/// A viewer sends its reference time and receives the delay until our answer; we ask a publisher in the same way,
/// because it gets no sender reports from us to echo.
/// - Source: RFC 3611 §4.4, §4.5.
package struct ReferenceTimeExchange: Sendable {
    /// Most reference times kept until the next report; a browser asks from one or two SSRCs.
    private static let maximumPending = 8

    private struct Question {
        let ssrc: UInt32
        let reference: UInt32
        let at: MonotonicTime
    }

    /// Our SSRC, to which a peer's answers are addressed.
    private let localSSRC: UInt32
    private var questions: [Question] = []

    package init(localSSRC: UInt32) {
        self.localSSRC = localSSRC
    }

    /// Processes an extended report: keeps questions for the next `blocks`, and measures round trips from answers.
    /// - Returns: round-trip times, for the session's `RTTEstimator`.
    package mutating func receive(
        _ report: ExtendedReport, at now: MonotonicTime, clock: WallClock
    ) -> [Duration] {
        var samples: [Duration] = []
        for block in report.blocks {
            switch block {
            case .receiverReferenceTime(let ntp):
                questions.removeAll { $0.ssrc == report.ssrc }
                if questions.count == Self.maximumPending { questions.removeFirst() }
                let reference = UInt32(truncatingIfNeeded: ntp >> 16)
                questions.append(Question(ssrc: report.ssrc, reference: reference, at: now))
            case .delaySinceLastReceiverReport(let answers):
                guard let answer = answers.first(where: { $0.ssrc == localSSRC }) else { continue }
                let sample = clock.roundTripTime(
                    echoed: answer.lastReceiverReference, delay: answer.delay, at: now)
                if let sample { samples.append(sample) }
            case .unknown: break
            }
        }
        return samples
    }

    /// The blocks for a report that is sent now: an answer to each question since the last report.
    /// - Parameter asks: whether to ask the peer as well; for sessions that publish.
    package mutating func blocks(
        at now: MonotonicTime, clock: WallClock, asks: Bool
    ) -> [ExtendedReport.Block] {
        var blocks: [ExtendedReport.Block] = []
        if asks { blocks.append(.receiverReferenceTime(clock.ntp(at: now))) }
        guard !questions.isEmpty else { return blocks }
        let answers = questions.map { question in
            ExtendedReport.DelaySinceLast(
                ssrc: question.ssrc, lastReceiverReference: question.reference,
                delay: NTPInterval.compact(nanoseconds: now.nanoseconds(since: question.at)))
        }
        questions.removeAll(keepingCapacity: true)
        blocks.append(.delaySinceLastReceiverReport(answers))
        return blocks
    }
}
