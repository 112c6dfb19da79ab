import Base
import Crypto
import Forwarding
import Peer
import Stage
import Wire

extension Node {
    /// Creates a session from an offer, and answers the offer.
    ///
    /// Everything that has to be awaited comes first: the stage's decision, and the parsing of the offer, which is
    /// skipped if the session would be refused anyway. Then `LiveStreams` decides in one step whether there is a
    /// session. The worker learns of it before the client has the answer, so the first check finds the session.
    package func createSession(_ request: SessionRequest) async throws(SessionRefusal) -> CreatedSession {
        var request = request
        // Cheap checks first: an offer is parsed only for a client that would be admitted as things are now.
        try live.checkPlace(for: request)
        var welcome = request.isWatching ? try await admit(&request) : nil
        try live.checkSource(of: request)
        try live.checkGate(of: request, at: now().elapsed)
        let worker = live.sessions.leastLoadedWorker
        let credentials = ICECredentials(worker: worker, using: &random)
        let (plan, answer) = try await read(
            request, as: workers.transport(of: worker, credentials: credentials))
        // A publisher is admitted after its offer was parsed: admission may create the stream, which a bad offer must
        // not. A viewer is admitted again if the stream's host has closed meanwhile, because nobody was there.
        if !request.isWatching || welcome?.host.isClosed == true { welcome = try await admit(&request) }
        let id = freshID()
        let candidate = SessionCandidate(
            id: id, request: request, plan: plan, worker: worker, credentials: credentials,
            clearance: welcome?.clearance(after: inboxes.effects.latest), answer: answer)
        let begins = try await open(candidate, for: welcome)
        return CreatedSession(id: id, answer: answer, entityTag: credentials.ufrag, begins: begins)
    }

    /// Admits a session or refuses it, as things are now, and notifies its worker immediately.
    /// - Returns: the stream that a feed session begins with.
    @discardableResult
    private func open(
        _ candidate: SessionCandidate, for welcome: Welcome?
    ) async throws(SessionRefusal) -> StreamID? {
        let (id, worker, request) = (candidate.id, candidate.worker, candidate.request)
        // Of a session on a closed host nobody would hear: it has to come again, to the next host.
        guard welcome?.host.door.enter() != false else { throw isStopping ? .stopping : .overloaded }
        let (opening, actions) = try live.admit(candidate, at: now().elapsed)
        // Read before anything is awaited: later changes are sent on the control channel.
        let begins = live.feed.focus(of: id)
        guard workers[worker].post(.open(opening)) else {
            // The actions are performed even so: another session may have lost its place for this one.
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

    /// Checks whether a client may publish by RTMP or SRT.
    /// - Returns: what `openIngest` needs.
    func admitIngest(_ request: SessionRequest) async throws(SessionRefusal) -> IngestAdmission {
        var request = request
        try live.checkPlace(for: request)
        guard let welcome = try await admit(&request) else { throw .overloaded }
        return IngestAdmission(request: request, welcome: welcome)
    }

    /// Creates the session of a publisher by RTMP or SRT, once the formats of its media are known.
    /// - Parameter sources: in the order in which the publisher's packets refer to them.
    func openIngest(
        _ admission: IngestAdmission, sources: [SourcePlan]
    ) async throws(SessionRefusal) -> (id: SessionID, worker: WorkerHandle) {
        let worker = live.sessions.leastLoadedWorker
        let candidate = SessionCandidate(
            id: freshID(), request: admission.request,
            plan: SessionPlan(ingesting: sources), worker: worker,
            credentials: ICECredentials(worker: worker, using: &random),
            clearance: admission.welcome.clearance(after: inboxes.effects.latest))
        try await open(candidate, for: admission.welcome)
        return (candidate.id, workers[worker])
    }

    /// A session ID whose label no current session has: logs and operators identify sessions by their labels.
    private func freshID() -> SessionID {
        var id = SessionID(using: &random)
        while live.sessions.histories.find(id.label) != nil { id = SessionID(using: &random) }
        return id
    }

    /// Parses an offer and answers it, on the offer desk's actor.
    private func read(
        _ request: SessionRequest, as transport: LocalTransport
    ) async throws(SessionRefusal) -> (plan: SessionPlan, answer: String) {
        let (plan, answer) = try await desks.offers.answer(request, as: transport)
        guard request.purpose != .feed || plan.feedPairs.count == 2 else {
            throw .unsupportedOffer(
                "The feed requires two receiving audio and two receiving video m-lines with supported codecs."
            )
        }
        return (plan, answer)
    }

    /// A stage's permission for a client to come.
    struct Welcome {
        let host: StreamHost
        /// Whether the participant was there already.
        let wasPresent: Bool

        /// - Parameter effect: the latest effect of any stage, as of before this call.
        func clearance(after effect: UInt64) -> SessionCandidate.Clearance {
            SessionCandidate.Clearance(
                record: host.durableRecord, wasPresent: wasPresent, effect: effect)
        }
    }

    /// Asks the stage whether the client may come; for a publisher this also decides who the host is.
    /// - Returns: nil for a feed session, which belongs to no stream, and for a player that does not wait and names a
    ///   stream that does not exist.
    private func admit(_ request: inout SessionRequest) async throws(SessionRefusal) -> Welcome? {
        guard request.purpose != .feed else { return nil }
        do throws(StageRefusal) {
            let isStranger = request.sender == nil
            if request.isWatching {
                let waits = request.purpose != .play || request.patience != nil
                guard waits || !configuration.createsStreamsOnPublish else {
                    // A player that does not wait for a publisher need not create a place to wait in.
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

    /// The stream and the purpose of a session; nil if there is no such session.
    package func session(_ id: SessionID) -> (stream: StreamID, purpose: SessionRequest.Purpose)? {
        live.sessions[id].map { ($0.stream, $0.purpose) }
    }

    /// The stream and the purpose of a session that its client may end.
    ///
    /// Includes sessions that have just ended without a request: a client closes its connection and sends `DELETE` in
    /// the same moment.
    package func sessionToEnd(
        _ id: SessionID
    ) -> (stream: StreamID, purpose: SessionRequest.Purpose)? {
        session(id) ?? live.sessions.ended[id]
    }

    /// Changes a client's preferences for pictures.
    /// - Returns: all its preferences after the change.
    package func prefer(_ patch: DeliveryPatch, in id: SessionID) async throws(SessionRefusal) -> JSON {
        guard let action = live.prefer(patch, by: id, at: now().elapsed), let record = live.sessions[id]
        else {
            throw .unknownSession
        }
        await perform([action])
        return record.preferences.json
    }

    /// What a session is sent and why, at most a second old, and what its client prefers; nil if there is no such
    /// session.
    package func quality(of id: SessionID) -> JSON? {
        live.sessions[id].map { DeliveryQuality.json($0.gauge.quality, $0.preferences) }
    }

    /// Accepts trickled candidates, after checking that they belong to this session; an ICE-lite server does not use
    /// them.
    package func trickle(_ id: SessionID, fragment text: String) async throws(SessionRefusal) {
        guard case .candidates = try await readUpdate(text, of: id).update else {
            throw .unsupportedOffer("The fragment has other ICE credentials. Restart ICE with If-Match: *.")
        }
    }

    /// Gives a session new ICE credentials.
    /// - Returns: the fragment for the answer, and the new entity tag.
    /// - Throws: `SessionRefusal.malformedOffer` if the client's credentials are the old ones.
    package func restartICE(
        _ id: SessionID, fragment text: String
    ) async throws(SessionRefusal) -> (fragment: String, entityTag: String) {
        let (record, update) = try await readUpdate(text, of: id)
        guard case .restart(let remote) = update else {
            throw .malformedOffer("An ICE restart requires a new a=ice-ufrag and a=ice-pwd.")
        }
        let local = ICECredentials(worker: record.worker, using: &random)
        // The worker first: if it accepts no command, nothing has changed.
        guard workers[record.worker].post(.restartICE(id, local, remote: remote)) else { throw .overloaded }
        var plan = record.plan
        plan.remoteCredentials = remote
        live.restartICE(of: id, entityTag: local.ufrag, remote: remote, at: now().elapsed)
        let transport = workers.transport(of: record.worker, credentials: local)
        return (SDPFragment(restarting: plan, as: transport).text, local.ufrag)
    }

    /// Parses a fragment on the offer desk's actor.
    /// - Returns: the session as it is after that, and what the fragment means for it.
    private func readUpdate(
        _ text: String, of id: SessionID
    ) async throws(SessionRefusal) -> (record: SessionRecord, update: ICEUpdate) {
        guard let request = live.sessions[id]?.request else { throw .unknownSession }
        let fragment = try await desks.offers.read(fragment: text, isStrangers: request.sender == nil)
        // Looked up again: the session may have changed or ended while the fragment was parsed.
        guard let record = live.sessions[id] else { throw .unknownSession }
        do throws(ICEUpdate.Refusal) {
            return (record, try ICEUpdate(fragment, current: record.plan.remoteCredentials))
        } catch {
            throw .malformedOffer("The fragment's a=ice-ufrag or a=ice-pwd is missing or malformed.")
        }
    }

    /// Ends a session at its client's request.
    /// - Returns: false if there is no such session, and none has ended on its own lately.
    package func endSession(_ id: SessionID) async -> Bool {
        let actions = live.end(id, because: "deleted", at: now().elapsed)
        let wasThere = live.acknowledgeEnd(of: id)
        await perform(actions)
        return wasThere
    }
}
