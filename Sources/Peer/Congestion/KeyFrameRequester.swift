import Base
import Wire

/// Turns the key-frame demands of any number of viewers into few requests to one publisher.
///
/// One per track layer. At most one request is outstanding, at most one leaves in a second, and a key frame that
/// arrives satisfies every demand made so far: a thousand joins cost the publisher no more than one. If demands
/// continue faster than that, requests move further apart, because key frames take their bits from the pictures
/// between them: one a second for an hour makes a picture visibly worse. For the same reason the requests that
/// viewers cause are limited by what this source's key frames cost, unless a viewer without any picture would wait
/// for long.
/// - Source: RFC 4585 §6.3.1 (PLI), RFC 5104 §4.3.1 (FIR; §4.3.1.2 for its sequence number).
package struct KeyFrameRequester: Sendable {
    /// What to send to the publisher.
    package enum Request: Equatable, Sendable {
        case pictureLossIndication
        /// A repeated request carries the sequence number of the one it repeats.
        case fullIntraRequest(sequenceNumber: UInt8)

        /// - Parameter senderSSRC: ours; `mediaSSRC` is the layer's.
        package func packet(senderSSRC: UInt32, mediaSSRC: UInt32) -> RTCPPacket {
            switch self {
            case .pictureLossIndication:
                .pictureLossIndication(.init(senderSSRC: senderSSRC, mediaSSRC: mediaSSRC))
            case .fullIntraRequest(let number):
                .fullIntraRequest(
                    .init(senderSSRC: senderSSRC, entries: [.init(ssrc: mediaSSRC, sequenceNumber: number)]))
            }
        }
    }

    /// Why a key frame is needed; the greatest reason decides how long it may take.
    package enum Reason: Comparable, Sendable {
        /// No viewer waits: there is a picture to show until a newer one arrives, requested or not.
        case renewal
        /// A viewer asks although it could have had, or has just been sent, all packets from the latest key frame
        /// on.
        case repetition
        /// A viewer has nothing to begin with.
        case beginning
        /// Packets were lost between publisher and server: every viewer waits.
        case loss
    }

    /// How often a publisher is asked, and what that may cost.
    package struct Limits: Equatable, Sendable {
        /// Least time between two requests, whatever is demanded.
        package var minimumInterval = Duration.seconds(1)
        /// What the interval grows to, by a quarter each time a demand has to wait for it.
        package var maximumInterval = Duration.seconds(2)
        /// An unanswered request is repeated after twice the round-trip time, but not earlier than this.
        package var minimumRetry = Duration.milliseconds(500)
        /// Upper limit of the retry interval, which doubles with every retry.
        package var maximumRetry = Duration.seconds(8)

        /// Percent of the source's bitrate that may go to key frames requested by viewers.
        package var viewersShare = 2
        /// Longest wait that `viewersShare` may cause for a viewer with nothing to begin with.
        package var maximumWait = Duration.seconds(2)
        /// Longest wait that `viewersShare` may cause at all: a still screen share consists of key frames only.
        package var maximumCostInterval = Duration.seconds(20)

        package init() {}
    }

    /// One request that was sent, for logs and operators.
    package struct Occasion: Equatable, Sendable {
        /// The greatest reason among the demands at that time.
        package let reason: Reason
        /// 1 for the first request, increased with every repetition because no key frame came.
        package let attempt: Int
        /// Time since the latest key frame began to arrive; nil before the first.
        package let age: Duration?

        package init(reason: Reason, attempt: Int, age: Duration?) {
            self.reason = reason
            self.attempt = attempt
            self.age = age
        }
    }

    /// `none` if the publisher negotiated neither: then nothing is ever requested.
    private enum Kind { case pictureLossIndication, fullIntraRequest, none }

    private let kind: Kind
    private let limits: Limits
    /// Why a key frame is needed; nil while none is.
    private var reason: Reason?
    /// Whether the demand came before another request was allowed.
    private var isDeferred = false
    /// How far apart key frames for viewers should be, given the cost of the latest one.
    package private(set) var costInterval = Duration.zero
    private var interval: Duration
    /// Requests sent since the last key frame.
    private var unanswered = 0
    private var fullIntraSequence: UInt8 = 0
    /// No request leaves before this; nil until the first one.
    private var notBefore: MonotonicTime?
    private var lastRequest: MonotonicTime?
    private var lastKeyFrame: MonotonicTime?
    /// The latest request; nil before the first.
    package private(set) var occasion: Occasion?

    /// For metrics: key-frame demands, of which several can share one request.
    package private(set) var demandCount: UInt64 = 0
    /// For metrics: PLIs and FIRs sent.
    package private(set) var requestCount: UInt64 = 0
    /// For metrics: key frames that arrived, requested or not.
    package private(set) var keyFrameCount: UInt64 = 0

    /// Uses PLI if it was negotiated, because every browser answers it; FIR is for encoders that support nothing
    /// else.
    package init(pictureLossIndication: Bool, fullIntraRequest: Bool, limits: Limits = Limits()) {
        kind = pictureLossIndication ? .pictureLossIndication : fullIntraRequest ? .fullIntraRequest : .none
        self.limits = limits
        interval = limits.minimumInterval
    }

    /// Notes that a viewer, or the server itself, cannot continue without a key frame.
    package mutating func demand(_ reason: Reason, at now: MonotonicTime) {
        demandCount &+= 1
        guard kind != .none else { return }
        if let known = self.reason {
            self.reason = max(known, reason)
            return
        }
        self.reason = reason
        isDeferred = now < notBefore ?? now
        if notBefore == nil { notBefore = now }
    }

    /// Satisfies every demand made so far, including one whose request was not sent yet.
    /// - Parameter precedesLoss: whether packets after it are lost for good, so that it satisfies nobody.
    package mutating func keyFrameArrived(precedesLoss: Bool = false, at now: MonotonicTime) {
        keyFrameCount &+= 1
        lastKeyFrame = now
        guard !precedesLoss else { return }
        reason = nil
        if let lastRequest { notBefore = lastRequest + interval }
        unanswered = 0
    }

    /// Notes the cost of a key frame of this source.
    /// - Parameters:
    ///   - size: in bytes.
    ///   - bitrate: of the source, in bits a second.
    package mutating func measured(_ size: Int, ofBitrate bitrate: Int) {
        let bits = Int64(min(max(size, 0), 1 << 30)) * 8
        let allowed = Int64(min(max(bitrate, 1), 1 << 40)) * Int64(limits.viewersShare) / 100
        let milliseconds = bits * 1_000 / max(allowed, 1)
        costInterval = min(.milliseconds(milliseconds), limits.maximumCostInterval)
    }

    /// Drops the demand, because the last viewer left.
    package mutating func cancel() {
        reason = nil
    }

    /// When `requestDue` must be called next; nil while there is no demand.
    package var deadline: MonotonicTime? {
        guard let reason, let notBefore else { return nil }
        guard unanswered == 0, let lastRequest else { return notBefore }
        return switch reason {
        case .loss: notBefore
        case .beginning: max(notBefore, lastRequest + min(costInterval, limits.maximumWait))
        case .repetition, .renewal: max(notBefore, lastRequest + costInterval)
        }
    }

    /// Whether a demand made now causes a request immediately, or one has just left and was not answered yet.
    package func asksAtOnce(for reason: Reason, at now: MonotonicTime) -> Bool {
        guard kind != .none else { return false }
        guard unanswered == 0 else { return unanswered == 1 }
        var demanded = self
        demanded.demand(reason, at: now)
        return demanded.deadline.map { $0 <= now } ?? false
    }

    /// The request to send now, if one is due; once returned it counts as sent.
    /// - Parameter rtt: round-trip time to the publisher; nil if not known yet.
    package mutating func requestDue(at now: MonotonicTime, rtt: Duration?) -> Request? {
        guard let deadline, now >= deadline, let reason else { return nil }
        if unanswered == 0 {
            fullIntraSequence &+= 1
            let grown = min(interval + interval / 4, limits.maximumInterval)
            interval = isDeferred ? grown : limits.minimumInterval
        }
        notBefore = now + max(limits.minimumInterval, retryInterval(rtt: rtt))
        lastRequest = now
        unanswered += 1
        requestCount &+= 1
        occasion = Occasion(
            reason: reason, attempt: unanswered,
            age: lastKeyFrame.map { .nanoseconds(now.nanoseconds(since: $0)) })
        // A publisher that is too busy to answer is not asked again for a mere renewal; a viewer that still wants a
        // newer picture demands it again.
        if reason == .renewal { self.reason = nil }
        switch kind {
        case .pictureLossIndication: return .pictureLossIndication
        case .fullIntraRequest: return .fullIntraRequest(sequenceNumber: fullIntraSequence)
        case .none: return nil
        }
    }

    /// The wait before the next retry; doubles with each unanswered request.
    private func retryInterval(rtt: Duration?) -> Duration {
        let rtt = min(rtt ?? .zero, RTTEstimator.maximum)
        let first = max(rtt * 2, limits.minimumRetry)
        return min(first * (1 << min(unanswered, 8)), limits.maximumRetry)
    }
}
