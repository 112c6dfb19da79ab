import Base
import Crypto
import Forwarding
import Peer
import Stage
import StoryFeed
import Wire

extension Node {
    /// Makes a session of an offer and answers it.
    ///
    /// Whether there is a place, a stream and a permission is looked at before the offer is read, and again once that
    /// has been done elsewhere. The worker learns of the session before the client has the answer, so the first check
    /// finds it.
    package func createSession(_ request: SessionRequest) async throws(SessionRefusal) -> CreatedSession {
        var request = request
        try checkPlace(for: request)
        var host = request.isWatching ? try await admit(&request) : nil
        try checkSource(of: request)
        let worker = sessions.leastLoadedWorker
        let credentials = ICECredentials(worker: worker, using: &random)
        let (plan, answer) = try await read(
            request, as: workers.transport(of: worker, credentials: credentials))
        if !request.isWatching { host = try await admit(&request) }
        // Something may have happened meanwhile; nothing is waited for from here on until the session is there.
        try checkPlace(for: request)
        try checkSource(of: request)
        let id = SessionID(using: &random)
        guard workers[worker].post(.open(opening(id, request, plan, credentials))) else { throw .overloaded }

        let isLive = streams[request.stream]?.isLive ?? false
        let record = SessionRecord(
            id: id, request: request, isStrangers: request.sender == nil, plan: plan, worker: worker,
            entityTag: credentials.ufrag,
            waitsUntil: isLive ? nil : request.patience.map { now().elapsed + $0 })
        let crowded = sessions.add(record)
        if request.purpose != .feed { streams[request.stream, default: LiveStream()].add(record) }
        if let host { registry.keep(host) }
        try takePlace(id, request, plan, on: worker)
        if request.isOnStage, let programme = directory[request.stream]?.details.programme {
            setProgramme(programme, of: request.stream)
        }
        if omissions.admitSessionLine(at: now().elapsed) {
            log.info(
                "session.created",
                [
                    "session": id.label, "purpose": request.purpose.rawValue, "stream": request.stream,
                    "worker": worker,
                ])
        }
        if let crowded { _ = await endSession(crowded, because: "no check came") }
        if let host { try await confirm(id, request, with: host) }
        return CreatedSession(id: id, answer: answer, entityTag: credentials.ufrag)
    }

    private func opening(
        _ id: SessionID, _ request: SessionRequest, _ plan: SessionPlan, _ credentials: ICECredentials
    ) -> SessionOpening {
        SessionOpening(
            id: id, plan: plan, localCredentials: credentials,
            publishes: request.isSource ? request.stream : nil,
            follows: request.isWatching && request.feed == nil ? request.stream : nil,
            isFeed: request.purpose == .feed,
            stage: request.isOnStage ? request.stream : nil, participant: request.participant,
            order: sessions.nextOrder, requested: request.received)
    }

    /// Whether there is a place, in the server and on the stage.
    private func checkPlace(for request: SessionRequest) throws(SessionRefusal) {
        guard !isStopping else { throw .overloaded }
        try sessions.checkPlace(for: request)
        if request.purpose == .stage, !request.isAudience { try checkRoom(for: request) }
    }

    private func checkSource(of request: SessionRequest) throws(SessionRefusal) {
        guard request.purpose == .play, request.patience == nil else { return }
        guard streams[request.stream]?.isLive == true else { throw .noPublisher }
    }

    /// Has an offer read and answered, elsewhere.
    private func read(
        _ request: SessionRequest, as transport: LocalTransport
    ) async throws(SessionRefusal) -> (plan: SessionPlan, answer: String) {
        let (plan, answer) = try await offerDesk.answer(request, as: transport)
        guard request.purpose != .feed || plan.feedPairs.count == 2 else {
            throw .unsupportedOffer(
                "The feed takes two audio and two video m-lines that receive, each with a codec of ours.")
        }
        return (plan, answer)
    }

    /// Counts whoever watches, and shows them the first stream of the feed.
    private func takePlace(
        _ id: SessionID, _ request: SessionRequest, _ plan: SessionPlan, on worker: Int
    ) throws(SessionRefusal) {
        do throws(FeedRefusal) {
            if let wish = request.feed {
                carryOut(try feed.enter(id, wish, plan.feedPairs, on: worker, at: now().elapsed))
            } else if request.isWatching {
                carryOut(try feed.enterPlayer(id, request.participant, on: worker))
            }
        } catch {
            let now = now().elapsed
            sessions.update(id) { $0.closesAt = now }
            throw .overloaded
        }
    }

    /// Somebody may have been banned, or moved off the stage, after they were let in and before the session was
    /// there to be ended.
    private func confirm(
        _ id: SessionID, _ request: SessionRequest, with host: StreamHost
    ) async throws(SessionRefusal) {
        do throws(StageRefusal) {
            try await host.confirm(request.sender, isOnStage: request.isOnStage)
        } catch {
            _ = await endSession(id, because: "no longer allowed")
            throw .stage(error)
        }
    }

    /// Asks the stage, which also knows who the host is.
    /// - Returns: nil for a session of the feed, which belongs to no stream.
    private func admit(_ request: inout SessionRequest) async throws(SessionRefusal) -> StreamHost? {
        guard request.purpose != .feed else { return nil }
        do throws(StageRefusal) {
            let isStranger = request.sender == nil
            if request.isWatching {
                if request.purpose == .play, request.patience == nil, configuration.createsStreamsOnPublish {
                    // Who does not wait need not be waited with.
                    let host = try await knownHost(of: request.stream, isStranger: isStranger)
                    try await host?.admit(request.sender)
                    return host
                }
                let host = try await place(of: request.stream, isStranger: isStranger)
                try await host.admit(request.sender)
                return host
            }
            guard let sender = request.sender else { throw .rejected(.notOnStage) }
            let host = try await place(of: request.stream, isStranger: isStranger)
            let standing = try await host.beginPublishing(
                sender, canCreate: configuration.createsStreamsOnPublish)
            request.isHost = standing == .host
            return host
        } catch {
            throw .stage(error)
        }
    }

    /// The strong entity tag of the session's ICE credentials, without quotes.
    package func entityTag(of id: SessionID) -> String? {
        sessions[id]?.entityTag
    }

    /// Which stream and role a session belongs to; nil if there is no such session.
    package func session(_ id: SessionID) -> (stream: StreamID, purpose: SessionRequest.Purpose)? {
        sessions[id].map { ($0.stream, $0.purpose) }
    }

    /// Takes trickled candidates; an ICE-lite server has no use for them but to check that they belong here.
    package func trickle(_ id: SessionID, fragment text: String) throws(SessionRefusal) {
        guard let record = sessions[id] else { throw .unknownSession }
        guard case .candidates = try Self.readUpdate(text, of: record) else {
            throw .unsupportedOffer("The fragment has other ICE credentials: restart ICE with If-Match: *.")
        }
    }

    /// Gives a session new ICE credentials.
    /// - Returns: the fragment that answers, and the new entity tag.
    package func restartICE(
        _ id: SessionID, fragment text: String
    ) throws(SessionRefusal) -> (fragment: String, entityTag: String) {
        guard let record = sessions[id] else { throw .unknownSession }
        guard case .restart(let remote) = try Self.readUpdate(text, of: record) else {
            throw .malformedOffer("An ICE restart needs an a=ice-ufrag and an a=ice-pwd that are new.")
        }
        let local = ICECredentials(worker: record.worker, using: &random)
        guard workers[record.worker].post(.restartICE(id, local, remote: remote)) else { throw .overloaded }
        var plan = record.plan
        plan.remoteCredentials = remote
        sessions.update(id) { record in
            record.entityTag = local.ufrag
            record.plan = plan
        }
        let transport = workers.transport(of: record.worker, credentials: local)
        return (SDPFragment(restarting: plan, as: transport).text, local.ufrag)
    }

    private static func readUpdate(
        _ text: String, of record: SessionRecord
    ) throws(SessionRefusal) -> ICEUpdate {
        let fragment: SDPFragment
        do throws(WireError) {
            fragment = try SDPFragment(parsing: text)
        } catch {
            throw .malformedOffer(SessionOffer.Refusal.malformed(error).description)
        }
        do throws(ICEUpdate.Refusal) {
            return try ICEUpdate(fragment, current: record.plan.remoteCredentials)
        } catch {
            throw .malformedOffer("The fragment's a=ice-ufrag or a=ice-pwd is missing or malformed.")
        }
    }

    /// Ends a session at its client's wish.
    /// - Returns: false if there is no such session.
    package func endSession(_ id: SessionID) async -> Bool {
        await endSession(id, because: "deleted")
    }

    func endSession(_ id: SessionID, because reason: String) async -> Bool {
        guard let record = sessions[id] else { return false }
        _ = workers[record.worker].post(.close(id))
        await forget(id, because: reason)
        return true
    }
}

extension SessionPlan {
    /// The m-lines of each place in the feed; empty unless there are two of each kind.
    fileprivate var feedPairs: [(audio: String, video: String)] {
        let audio = slots.filter { $0.kind == .audio }.map(\.mid)
        let video = slots.filter { $0.kind == .video }.map(\.mid)
        guard audio.count == 2, video.count == 2 else { return [] }
        return zip(audio, video).map { ($0, $1) }
    }
}
