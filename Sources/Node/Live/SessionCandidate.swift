import Base
import Forwarding
import Peer
import Stage
import StoryFeed
import Wire

/// A session that is about to be made, with everything that had to be awaited for it.
struct SessionCandidate {
    /// The stage's decision about the client.
    struct Clearance {
        /// The durable record of the stream as of now, however long ago the stage decided; nil for a stream that does
        /// not exist.
        var record: StageRecord?
        /// Whether the participant was present when the stage decided.
        var wasPresent = false
        /// The latest effect of a stage before `record` was read, which contains its change.
        var effect: UInt64 = 0
    }

    let id: SessionID
    let request: SessionRequest
    /// What offer and answer have agreed on.
    let plan: SessionPlan
    /// The worker that will carry the session.
    let worker: Int
    /// The server's ICE credentials, whose ufrag names the worker.
    let credentials: ICECredentials
    /// Nil for a feed session, which belongs to no stream, and for a stream that does not exist.
    let clearance: Clearance?
    /// The SDP answer; empty for a publisher by RTMP or SRT.
    var answer = ""
    /// Where the worker will leave measurements of what it sends.
    let gauge = QualityGauge()

    /// Throws if the participant would no longer be admitted: they may have been banned or moved off the stage while
    /// there was no session to be ended.
    ///
    /// Changes that are durable by now are found here; later ones end the session.
    func checkClearance() throws(SessionRefusal) {
        guard let clearance, let record = clearance.record else { return }
        // Only a published stream may begin again after its end, and only viewers can wait for that: the effect that
        // ends its publishers may have been performed already.
        guard record.phase != .ended || record.origin == .published && request.isWatching else {
            throw .stage(.rejected(.ended))
        }
        guard let sender = request.sender else { return }
        if let rejection = record.shutsOut(sender, isPresent: clearance.wasPresent) {
            throw .stage(.rejected(rejection))
        }
        // On a published stream the latest source takes the host's place, and the earlier source is ended for that.
        guard request.isOnStage, record.origin == .made else { return }
        if record.standing(of: sender) == .viewer { throw .stage(.rejected(.notOnStage)) }
    }

    /// Counts a viewer toward the limits, and chooses the stream that a feed session begins with.
    func enter(_ feed: inout LiveFeed, at now: MonotonicTime) throws(SessionRefusal) -> [LiveFeed.Action] {
        guard request.isWatching else { return [] }
        do throws(FeedRefusal) {
            guard let wish = request.feed else {
                return try feed.enterPlayer(id, request.participant, on: worker)
            }
            return try feed.enter(id, wish, plan.feedPairs, on: worker, at: now)
        } catch {
            throw .overloaded
        }
    }

    /// The record of the new session.
    /// - Parameters:
    ///   - order: the session's place in the order in which sessions are made.
    ///   - isLive: whether its stream has a source, so that a viewer need not wait for one.
    func record(order: UInt64, isLive: Bool, at now: MonotonicTime) -> SessionRecord {
        SessionRecord(
            id: id, request: request, isStrangers: request.sender == nil, plan: plan, worker: worker,
            entityTag: credentials.ufrag, gauge: gauge,
            waitsUntil: isLive ? nil : request.patience.map { now + $0 }, order: order, created: now,
            effect: clearance?.effect ?? 0, answer: answer)
    }

    /// The command with which the worker opens the session.
    /// - Parameter order: the session's place in the order in which sessions are made.
    func opening(order: UInt64) -> SessionOpening {
        SessionOpening(
            id: id, plan: plan, localCredentials: credentials,
            publishes: request.isSource ? request.stream : nil,
            follows: request.isWatching && request.feed == nil ? request.stream : nil,
            isFeed: request.purpose == .feed,
            stage: request.isOnStage ? request.stream : nil, participant: request.participant,
            order: order, requested: request.received, gauge: gauge)
    }
}

extension SessionPlan {
    /// The m-lines of each seat of the feed; empty unless the plan has two receiving m-lines of each kind.
    var feedPairs: [(audio: String, video: String)] {
        let audio = slots.filter { $0.kind == .audio }.map(\.mid)
        let video = slots.filter { $0.kind == .video }.map(\.mid)
        guard audio.count == 2, video.count == 2 else { return [] }
        return zip(audio, video).map { ($0, $1) }
    }
}
