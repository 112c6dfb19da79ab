import Base
import Forwarding
import Peer
import Stage
import StoryFeed
import Wire

/// A session that is about to be: all of it that had to be waited for.
struct SessionCandidate {
    /// What a stream's stage has said of whoever asks.
    struct Clearance {
        /// What is durable of the stream now, however long ago the stage was asked; nil where nobody made it.
        var record: StageRecord?
        /// Whether they were there already when it was asked.
        var wasPresent = false
    }

    let id: SessionID
    let request: SessionRequest
    /// What was agreed.
    let plan: SessionPlan
    /// Our end's, on that worker.
    let worker: Int
    let credentials: ICECredentials
    /// Nil for a session of the feed, which belongs to no stream, and for a stream that nobody knows.
    let clearance: Clearance?
    /// The SDP that its client will have.
    var answer = ""
    /// Where the worker will leave what is sent.
    let gauge = QualityGauge()

    /// Whether somebody who was let in a moment ago still would be: they may have been banned, or moved off the stage,
    /// before there was a session to be ended.
    ///
    /// What is durable before the session is there is found here; what becomes durable after that ends the session.
    func checkClearance() throws(SessionRefusal) {
        guard let clearance, let record = clearance.record, let sender = request.sender else { return }
        if let rejection = record.shutsOut(sender, isPresent: clearance.wasPresent) {
            throw .stage(.rejected(rejection))
        }
        // On a published stream the latest source takes the host's place, and ends the earlier one by itself.
        guard request.isOnStage, record.origin == .made, record.phase != .ended else { return }
        if record.standing(of: sender) == .viewer { throw .stage(.rejected(.notOnStage)) }
    }

    /// Counts whoever watches, and shows them the first stream of the feed.
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

    /// What is remembered of it.
    /// - Parameters:
    ///   - order: the session's place among all.
    ///   - isLive: whether its stream has a source, so that it need not wait for one.
    func record(order: UInt64, isLive: Bool, at now: MonotonicTime) -> SessionRecord {
        SessionRecord(
            id: id, request: request, isStrangers: request.sender == nil, plan: plan, worker: worker,
            entityTag: credentials.ufrag, gauge: gauge,
            waitsUntil: isLive ? nil : request.patience.map { now + $0 }, order: order, created: now,
            answer: answer)
    }

    /// What the worker is told.
    /// - Parameter order: the session's place among all.
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
    /// The m-lines of each place in the feed; empty unless there are two of each kind.
    var feedPairs: [(audio: String, video: String)] {
        let audio = slots.filter { $0.kind == .audio }.map(\.mid)
        let video = slots.filter { $0.kind == .video }.map(\.mid)
        guard audio.count == 2, video.count == 2 else { return [] }
        return zip(audio, video).map { ($0, $1) }
    }
}
