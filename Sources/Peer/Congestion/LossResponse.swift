import Base

/// Decides how to treat a viewer whose reports show loss: what may be sent again, and whether video is sent.
///
/// Knows nothing but loss, so it acts late and estimates nothing. Where more than a tenth is lost repeatedly, no
/// replay is sent and little is retransmitted: both would only add to the loss. Where more than a third is lost, no
/// picture can be repaired, and audio is lost together with the video: video stops and is tried again, later each
/// time that it fails. Where the loss is excessive but a lower bitrate is possible, `excessiveLoss` reports it and
/// `ReportEstimator` takes over. Used only for clients by UDP that send nothing but receiver reports: with feedback
/// per packet `BandwidthEstimator` knows more, and sooner; `ReportEstimator` does for clients that send REMB,
/// `BacklogEstimator` for TCP connections.
package struct LossResponse: Sendable {
    /// The loss that reports show for some time.
    package struct Interval: Equatable, Sendable {
        /// Packets that the viewer should have received, by sequence numbers.
        package var expected = 0
        /// Of those, the packets that did not arrive.
        package var lost = 0
        /// Whether a burst left in this time; it may lose packets on a link that can carry the stream.
        package var hasBurst = false

        package init(expected: Int = 0, lost: Int = 0, hasBurst: Bool = false) {
            self.expected = expected
            self.lost = lost
            self.hasBurst = hasBurst
        }

        /// Adds the numbers of a later report.
        package mutating func add(_ other: Interval) {
            expected &+= other.expected
            lost &+= other.lost
            hasBurst = hasBurst || other.hasBurst
        }
    }

    /// Thresholds and times; percentages are of expected packets.
    package struct Limits: Equatable, Sendable {
        /// Percent that may be lost; radio links lose some at any rate.
        package var tolerated = 10
        /// Percent above which loss on any link, radio links included, means too high a bitrate.
        package var excessive = 15
        /// Percent from which on pictures can no longer be repaired.
        package var hopeless = 33
        /// Fewest packets from which a conclusion is drawn.
        package var minimumExpected = 30
        /// Loss that is shorter than this, or reported only once, changes nothing.
        package var minimumDuration = Duration.milliseconds(800)
        /// How long after video stops reports still describe what was sent before: a round trip with a full queue.
        package var settling = Duration.seconds(1)
        /// How long video stays stopped before the next trial; doubles with each trial that fails.
        package var minimumHold = Duration.seconds(5)
        /// Upper limit of `minimumHold` after it has doubled.
        package var maximumHold = Duration.seconds(60)
        /// How long video must be sent on trial to count as successful.
        package var trial = Duration.seconds(4)
        /// Longest wait for a key frame before the trial begins without one.
        package var maximumWait = Duration.seconds(30)

        package init() {}
    }

    /// Whether video is sent.
    private enum Pictures: Equatable {
        case sent
        case stopped
        /// Video may be sent again, since this time, and waits for a key frame.
        case announced(MonotonicTime)
        /// Video is sent on trial.
        case tried
    }

    /// Consecutive reports with too much loss.
    private struct Streak {
        private var count = 0
        private var first = MonotonicTime.zero

        mutating func note(_ isTooMuch: Bool, at now: MonotonicTime) {
            if count == 0 { first = now }
            count = isTooMuch ? count + 1 : 0
        }

        var isEmpty: Bool { count == 0 }

        /// Whether there were at least two, over at least this duration.
        func lasts(_ duration: Duration, at now: MonotonicTime) -> Bool {
            count > 1 && now >= first + duration
        }
    }

    /// Interval at which `advance` checks whether the key frame for a trial has come.
    private static let look = Duration.milliseconds(500)
    private let limits: Limits
    private var pending = Interval()
    /// Reports before this time are ignored.
    private var settled = MonotonicTime.zero
    private var intolerable = Streak()
    private var excess = Streak()
    private var hopeless = Streak()
    /// Percent; nil while the loss is tolerated.
    private var loss: Int?
    private var pictures = Pictures.sent
    private var hold: Duration
    /// When `advance` must be called next.
    package private(set) var deadline: MonotonicTime?

    package init(limits: Limits = Limits()) {
        self.limits = limits
        hold = limits.minimumHold
    }

    /// Percent lost while loss is excessive again and again, so that the bitrate should fall; nil otherwise.
    package private(set) var excessiveLoss: Int?

    /// Whether video may be sent, if only on trial.
    package var sendsPictures: Bool { pictures != .stopped }

    /// Whether video is stopped or on trial.
    package var isTrying: Bool { pictures != .sent }

    /// Whether a replay may be sent: it takes more bitrate than live packets.
    package var mayReplay: Bool { loss == nil && !isTrying }

    /// Percent of the usual budget for retransmissions; falls with the square of the loss.
    package var repairShare: Int { loss.map { max(5_000 / max($0 * $0, 1), 1) } ?? 100 }

    /// Whether a trial of video has failed since video last got through.
    package var hasFailed: Bool { hold > limits.minimumHold }

    /// Adds what a report shows; decides nothing before enough packets were expected.
    package mutating func receive(_ interval: Interval, at now: MonotonicTime) {
        pending.add(interval)
        guard pending.expected >= limits.minimumExpected else { return }
        let percent = min(max(pending.lost, 0), pending.expected) * 100 / pending.expected
        let hasBurst = pending.hasBurst
        pending = Interval()
        guard now >= settled, !hasBurst || percent <= limits.tolerated else { return }
        intolerable.note(percent > limits.tolerated, at: now)
        excess.note(percent > limits.excessive, at: now)
        excessiveLoss = excess.lasts(limits.minimumDuration, at: now) ? percent : nil
        hopeless.note(percent > limits.hopeless, at: now)
        if intolerable.isEmpty {
            loss = nil
        } else if intolerable.lasts(limits.minimumDuration, at: now) {
            loss = percent
        }
        if hopeless.lasts(limits.minimumDuration, at: now) || pictures == .tried && !hopeless.isEmpty {
            stop(at: now)
        }
    }

    private mutating func stop(at now: MonotonicTime) {
        guard pictures != .stopped else { return }
        if pictures != .sent { hold = min(hold * 2, limits.maximumHold) }
        pictures = .stopped
        hopeless = Streak()
        settled = now + limits.settling
        deadline = now + hold
    }

    /// Starts or ends a trial of video when it is time.
    /// - Parameter isWaiting: whether video that may be sent is waiting for its key frame.
    package mutating func advance(to now: MonotonicTime, isWaiting: Bool) {
        guard let deadline, now >= deadline else { return }
        switch pictures {
        case .sent:
            self.deadline = nil
        case .stopped:
            // Loss at this level with audio alone means that a trial of video would fail.
            guard hopeless.isEmpty else { return self.deadline = now + limits.settling }
            pictures = .announced(now)
            self.deadline = now + Self.look
        case .announced(let start):
            guard !isWaiting || now >= start + limits.maximumWait else {
                return self.deadline = now + Self.look
            }
            pictures = .tried
            self.deadline = now + limits.trial
        case .tried:
            pictures = .sent
            hold = limits.minimumHold
            self.deadline = nil
        }
    }
}
