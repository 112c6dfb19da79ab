import Base
import Crypto
import Forwarding
import Peer
import Stage
import Wire

extension Node {
    /// Makes a session of an offer and answers it.
    ///
    /// First comes all that has to be waited for: the stage's word, and the offer, which is read elsewhere, and not at
    /// all where nothing would come of it. Whether there is a session is decided in one step then, by `LiveStreams`.
    /// The worker learns of it before the client has the answer, so the first check finds it.
    package func createSession(_ request: SessionRequest) async throws(SessionRefusal) -> CreatedSession {
        var request = request
        try live.checkPlace(for: request)
        var welcome = request.isWatching ? try await admit(&request) : nil
        try live.checkSource(of: request)
        try live.checkGate(of: request, at: now().elapsed)
        let worker = live.sessions.leastLoadedWorker
        let credentials = ICECredentials(worker: worker, using: &random)
        let (plan, answer) = try await read(
            request, as: workers.transport(of: worker, credentials: credentials))
        if !request.isWatching { welcome = try await admit(&request) }
        let id = freshID()
        let candidate = SessionCandidate(
            id: id, request: request, plan: plan, worker: worker, credentials: credentials,
            clearance: welcome?.clearance, answer: answer)
        let begins = try await open(candidate, for: welcome)
        return CreatedSession(id: id, answer: answer, entityTag: credentials.ufrag, begins: begins)
    }

    /// Lets somebody in, or refuses it, as things are now; its worker learns of it at once.
    /// - Returns: what a session of the feed begins with.
    @discardableResult
    private func open(
        _ candidate: SessionCandidate, for welcome: Welcome?
    ) async throws(SessionRefusal) -> StreamID? {
        let (id, worker, request) = (candidate.id, candidate.worker, candidate.request)
        let (opening, actions) = try live.admit(candidate, at: now().elapsed)
        // Before anything is awaited: what follows is told on the control channel.
        let begins = live.feed.focus(of: id)
        guard workers[worker].post(.open(opening)) else {
            // Somebody else may have lost their place for it.
            await perform(actions + live.end(id, because: "the worker takes none", at: now().elapsed))
            throw isStopping ? .stopping : .overloaded
        }
        if let welcome { registry.keep(welcome.host) }
        if omissions.admitSessionLine(at: now().elapsed) {
            log.info(
                "session.created",
                [
                    "session": id.label, "purpose": request.purpose.rawValue, "stream": request.stream,
                    "worker": worker,
                ])
        }
        await perform(actions)
        return begins
    }

    /// Asks whether somebody may publish by another protocol than WebRTC.
    /// - Returns: what `openIngest` wants.
    func admitIngest(_ request: SessionRequest) async throws(SessionRefusal) -> IngestAdmission {
        var request = request
        try live.checkPlace(for: request)
        guard let welcome = try await admit(&request) else { throw .overloaded }
        return IngestAdmission(request: request, welcome: welcome)
    }

    /// Makes the session of somebody who publishes by another protocol, now that it is known what they send.
    /// - Parameter sources: in the order in which packets name them.
    func openIngest(
        _ admission: IngestAdmission, sources: [SourcePlan]
    ) async throws(SessionRefusal) -> (id: SessionID, worker: WorkerHandle) {
        let worker = live.sessions.leastLoadedWorker
        let candidate = SessionCandidate(
            id: freshID(), request: admission.request,
            plan: SessionPlan(ingesting: sources), worker: worker,
            credentials: ICECredentials(worker: worker, using: &random),
            clearance: admission.welcome.clearance)
        try await open(candidate, for: admission.welcome)
        return (candidate.id, workers[worker])
    }

    /// A name of which no session that lives has the label: by that the log and operators mean one of them.
    private func freshID() -> SessionID {
        var id = SessionID(using: &random)
        while live.sessions.histories.find(id.label) != nil { id = SessionID(using: &random) }
        return id
    }

    /// Has an offer read and answered, elsewhere.
    private func read(
        _ request: SessionRequest, as transport: LocalTransport
    ) async throws(SessionRefusal) -> (plan: SessionPlan, answer: String) {
        let (plan, answer) = try await desks.offers.answer(request, as: transport)
        guard request.purpose != .feed || plan.feedPairs.count == 2 else {
            throw .unsupportedOffer(
                "The feed takes two audio and two video m-lines that receive, each with a codec of ours.")
        }
        return (plan, answer)
    }

    /// The stage's word that somebody may come.
    struct Welcome {
        let host: StreamHost
        /// Whether they were there already.
        let wasPresent: Bool

        var clearance: SessionCandidate.Clearance {
            SessionCandidate.Clearance(record: host.durableRecord, wasPresent: wasPresent)
        }
    }

    /// Asks the stage, which also knows who the host is.
    /// - Returns: nil for a session of the feed, which belongs to no stream, and for a player that does not wait for a
    ///   name that means nothing.
    private func admit(_ request: inout SessionRequest) async throws(SessionRefusal) -> Welcome? {
        guard request.purpose != .feed else { return nil }
        do throws(StageRefusal) {
            let isStranger = request.sender == nil
            if request.isWatching {
                let waits = request.purpose != .play || request.patience != nil
                guard waits || !configuration.createsStreamsOnPublish else {
                    // Who does not wait need not be waited with.
                    let host = try await knownHost(of: request.stream, isStranger: isStranger)
                    guard let host else { return nil }
                    return Welcome(host: host, wasPresent: try await host.admit(request.sender))
                }
                let host = try await place(of: request.stream, isStranger: isStranger)
                return Welcome(host: host, wasPresent: try await host.admit(request.sender))
            }
            guard let sender = request.sender else { throw .rejected(.notOnStage) }
            let host = try await place(of: request.stream, isStranger: isStranger)
            let standing = try await host.beginPublishing(
                sender, canCreate: configuration.createsStreamsOnPublish)
            request.isHost = standing == .host
            return Welcome(host: host, wasPresent: true)
        } catch {
            throw .stage(error)
        }
    }

    /// The strong entity tag of the session's ICE credentials, without quotes.
    package func entityTag(of id: SessionID) -> String? {
        live.sessions[id]?.entityTag
    }

    /// Which stream and role a session belongs to; nil if there is no such session.
    package func session(_ id: SessionID) -> (stream: StreamID, purpose: SessionRequest.Purpose)? {
        live.sessions[id].map { ($0.stream, $0.purpose) }
    }

    /// Which stream and role a session has that its client may end: also one that has just ended by itself.
    package func sessionToEnd(
        _ id: SessionID
    ) -> (stream: StreamID, purpose: SessionRequest.Purpose)? {
        session(id) ?? live.sessions.ended[id]
    }

    /// Changes what a session's client wants of the pictures.
    /// - Returns: all that it wants now.
    package func prefer(_ patch: DeliveryPatch, in id: SessionID) async throws(SessionRefusal) -> JSON {
        guard let action = live.prefer(patch, by: id, at: now().elapsed), let record = live.sessions[id]
        else {
            throw .unknownSession
        }
        await perform([action])
        return record.preferences.json
    }

    /// What a session is sent and why, as of the last second, and what its client wants; nil if there is none.
    package func quality(of id: SessionID) -> JSON? {
        live.sessions[id].map { DeliveryQuality.json($0.gauge.quality, $0.preferences) }
    }

    /// Takes trickled candidates; an ICE-lite server has no use for them but to check that they belong here.
    package func trickle(_ id: SessionID, fragment text: String) async throws(SessionRefusal) {
        guard case .candidates = try await readUpdate(text, of: id).update else {
            throw .unsupportedOffer("The fragment has other ICE credentials: restart ICE with If-Match: *.")
        }
    }

    /// Gives a session new ICE credentials.
    /// - Returns: the fragment that answers, and the new entity tag.
    package func restartICE(
        _ id: SessionID, fragment text: String
    ) async throws(SessionRefusal) -> (fragment: String, entityTag: String) {
        let (record, update) = try await readUpdate(text, of: id)
        guard case .restart(let remote) = update else {
            throw .malformedOffer("An ICE restart needs an a=ice-ufrag and an a=ice-pwd that are new.")
        }
        let local = ICECredentials(worker: record.worker, using: &random)
        guard workers[record.worker].post(.restartICE(id, local, remote: remote)) else { throw .overloaded }
        var plan = record.plan
        plan.remoteCredentials = remote
        live.restartICE(of: id, entityTag: local.ufrag, remote: remote, at: now().elapsed)
        let transport = workers.transport(of: record.worker, credentials: local)
        return (SDPFragment(restarting: plan, as: transport).text, local.ufrag)
    }

    /// Has a fragment read, elsewhere.
    /// - Returns: what it means to the session as that is by then.
    private func readUpdate(
        _ text: String, of id: SessionID
    ) async throws(SessionRefusal) -> (record: SessionRecord, update: ICEUpdate) {
        guard let request = live.sessions[id]?.request else { throw .unknownSession }
        let fragment = try await desks.offers.read(fragment: text, isStrangers: request.sender == nil)
        guard let record = live.sessions[id] else { throw .unknownSession }
        do throws(ICEUpdate.Refusal) {
            return (record, try ICEUpdate(fragment, current: record.plan.remoteCredentials))
        } catch {
            throw .malformedOffer("The fragment's a=ice-ufrag or a=ice-pwd is missing or malformed.")
        }
    }

    /// Ends a session at its client's wish.
    /// - Returns: false if there is no such session, and none has just ended by itself.
    package func endSession(_ id: SessionID) async -> Bool {
        let actions = live.end(id, because: "deleted", at: now().elapsed)
        let wasThere = live.acknowledgeEnd(of: id)
        await perform(actions)
        return wasThere
    }
}
