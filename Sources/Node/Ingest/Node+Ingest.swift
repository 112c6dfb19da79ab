import Base
import Ingest
import Net
import Stage
import Wire

/// What somebody who may publish by another protocol needs to be let in.
struct IngestAdmission {
    let request: SessionRequest
    let welcome: Node.Welcome
}

/// Who publishes by another protocol than WebRTC, by connection and by session.
struct IngestRegister {
    private enum State {
        case admitted(IngestAdmission)
        case open(SessionID)
    }

    private var states: [ConnectionNumber: State] = [:]
    private var connections: [SessionID: ConnectionNumber] = [:]

    mutating func admit(_ admission: IngestAdmission, on connection: ConnectionNumber) {
        states[connection] = .admitted(admission)
    }

    /// Nil for a connection that is gone, or has a session.
    func admission(of connection: ConnectionNumber) -> IngestAdmission? {
        if case .admitted(let admission)? = states[connection] { admission } else { nil }
    }

    mutating func open(_ session: SessionID, on connection: ConnectionNumber) {
        states[connection] = .open(session)
        connections[session] = connection
    }

    /// A session has ended.
    /// - Returns: whose it was; nil for one that is none of these.
    mutating func end(_ session: SessionID) -> ConnectionNumber? {
        guard let connection = connections.removeValue(forKey: session) else { return nil }
        states[connection] = nil
        return connection
    }

    /// A connection is gone.
    /// - Returns: its session, if there is one.
    mutating func lose(_ connection: ConnectionNumber) -> SessionID? {
        guard case .open(let session)? = states.removeValue(forKey: connection) else { return nil }
        connections[session] = nil
        return session
    }
}

/// Publishers by RTMP, who follow the rules of WHIP.
extension Node {
    func take(_ news: IngestNews) async {
        let connection = news.connection
        switch news.event {
        case .asked(let key, let remote): await admit(connection, key, from: remote)
        case .begun(let formats): await open(connection, formats)
        case .notice(let notice): note(notice, of: connection)
        case .ended(let reason, let remote):
            let stream = ingests.stream(of: connection, among: live)
            note(reason, of: stream, from: remote)
            guard let session = ingests.lose(connection) else { return }
            await perform(live.end(session, because: reason.name, at: now().elapsed))
        }
    }

    private func admit(
        _ connection: ConnectionNumber, _ key: Secret<String>, from remote: TransportAddress
    ) async {
        guard let settings = configuration.ingest else { return }
        let grant: IngestSettings.Grant
        do throws(IngestSettings.Refusal) {
            grant = try settings.authorize(key)
        } catch {
            entrance?.tell(.end(.badKey(error.text)), to: connection)
            return
        }
        do throws(SessionRefusal) {
            if let key = grant.key { try await requireStanding(key, of: grant.stream) }
            let request = SessionRequest(
                ingesting: grant.stream, sender: grant.sender, received: now().elapsed,
                clientAddress: remote.ip)
            ingests.admit(try await admitIngest(request), on: connection)
            entrance?.tell(.accept, to: connection)
        } catch {
            entrance?.tell(.end(IngestEnd(error)), to: connection)
        }
    }

    /// A host revokes keys as they revoke links.
    private func requireStanding(_ key: Stage.Link, of stream: StreamID) async throws(SessionRefusal) {
        do throws(StageRefusal) {
            guard try await linkRevocations(of: stream).allows(key) else { throw .rejected(.linkRevoked) }
        } catch {
            // Of a stream that nobody made yet, nothing was revoked.
            guard error != .unknownStream else { return }
            throw .stage(error)
        }
    }

    private func open(_ connection: ConnectionNumber, _ formats: IngestFormats) async {
        guard let admission = ingests.admission(of: connection) else { return }
        let sources = IngestInlet.Sources(formats)
        do throws(SessionRefusal) {
            let (session, worker) = try await openIngest(admission, sources: sources.plans)
            ingests.open(session, on: connection)
            // It may have ended while its stage was told of it.
            guard live.sessions[session] != nil else { return endIngest(of: session, because: "ended") }
            log.info(
                "rtmp.publishing",
                [
                    "stream": admission.request.stream, "session": session.label,
                    "video": formats.hasVideo ? "H.264" : "none",
                    "width": formats.resolution?.width ?? 0, "height": formats.resolution?.height ?? 0,
                    "profile": formats.profile.map(Int.init) ?? 0, "audio": formats.hasAudio ? "AAC" : "none",
                ])
            let inlet = IngestInlet(
                session: session, worker: worker, sources: sources, transcoder: transcoder)
            entrance?.tell(.open(inlet), to: connection)
        } catch {
            entrance?.tell(.end(IngestEnd(error)), to: connection)
        }
    }

    /// The session of a publisher has ended here: their connection has no use any more.
    func endIngest(of session: SessionID, because reason: String) {
        guard let connection = ingests.end(session) else { return }
        let text =
            reason == "replaced"
            ? "Another publisher of this stream took over." : "The stream, or this session of it, was ended."
        entrance?.tell(.end(.ended(text)), to: connection)
    }

    // MARK: The log

    private func note(_ reason: IngestEnd, of stream: StreamID?, from remote: TransportAddress) {
        guard omissions.admitSessionLine(at: now().elapsed) else { return }
        let fields: KeyValuePairs<String, any CustomStringConvertible> = [
            "stream": stream?.description ?? "", "address": remote, "reason": reason.name,
            "detail": reason.detail,
        ]
        switch reason {
        case .byPublisher, .ended: log.info("rtmp.ended", fields)
        case .malformed, .timedOut, .unknownApplication: log.debug("rtmp.ended", fields)
        case .stalled, .badKey, .refused, .unsupported: log.warning("rtmp.refused", fields)
        }
    }

    private func note(_ notice: IngestMedia.Notice, of connection: ConnectionNumber) {
        let stream = ingests.stream(of: connection, among: live)?.description ?? ""
        switch notice {
        case .rareKeyFrames(let milliseconds):
            log.warning(
                "rtmp.key-frames-rare",
                [
                    "stream": stream, "seconds": milliseconds / 1_000,
                    "why-it-matters": "viewers may wait so long; set the encoder's key-frame interval to 2 s",
                ])
        case .soundLeftOut:
            log.warning(
                "rtmp.sound-left-out",
                ["stream": stream, "why": "AAC becomes Opus in the transcoder, which is off"])
        case .cameTooLate(let isAudio):
            log.warning("rtmp.came-too-late", ["stream": stream, "what": isAudio ? "sound" : "picture"])
        }
    }
}

extension IngestRegister {
    /// Nil for a connection that has not said.
    fileprivate func stream(of connection: ConnectionNumber, among live: LiveStreams) -> StreamID? {
        switch states[connection] {
        case .admitted(let admission): admission.request.stream
        case .open(let session): live.sessions[session]?.stream
        case nil: nil
        }
    }
}

extension IngestEnd {
    /// What a publisher is told of a refusal.
    fileprivate init(_ refusal: SessionRefusal) {
        switch refusal {
        case .stage(.rejected(.linkRevoked)):
            self = .badKey("The host has revoked this key: copy a new one from the studio.")
        case .stage(.rejected(let rejection)): self = .refused(rejection.explanation)
        case .stage(.unknownStream):
            self = .badKey("There is no such stream: make it first, in the studio or by POST /v1/streams.")
        case .stage: self = .refused("This cannot be done now. Try again.")
        case .overloaded, .tooManySessions, .noPublisher, .unknownSession, .malformedOffer,
            .unsupportedOffer, .notAcceptable:
            self = .refused("The server has no room for another session now.")
        }
    }
}
