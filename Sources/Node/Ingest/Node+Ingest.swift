import Base
import Ingest
import Net
import Stage
import Wire

/// Publishers by RTMP and SRT, who follow the rules of WHIP.
extension Node {
    func take(_ news: IngestNews) async {
        let connection = news.connection
        switch news.event {
        case .asked(let key, let remote): await admit(connection, key, from: remote)
        case .begun(let formats): await open(connection, formats)
        case .originalBegun(let session):
            guard let publisher = ingests.publisher(of: connection) else { return }
            await packagings?.renewOriginal(of: publisher.stream, from: session)
        case .notice(let notice):
            note(notice, of: connection)
            if let status = ingests.update(connection, { $0.note(notice) }) {
                await tell(status, of: connection)
            }
        case .report(let report):
            if let status = ingests.update(connection, { $0.report = report }) {
                await tell(status, of: connection)
            }
        case .link(let link):
            if let status = ingests.update(connection, { $0.link = link }) {
                await tell(status, of: connection)
            }
        case .rejected(let reason, let remote): note(reason, of: nil, connection, from: remote)
        case .ended(let reason, let remote):
            let publisher = ingests.publisher(of: connection)
            let session = ingests.lose(connection)
            note(reason, of: publisher?.stream, connection, from: remote)
            if let publisher { await tellEnd(of: publisher.id, in: publisher.stream, because: reason) }
            guard let session else { return }
            await perform(live.end(session, because: reason.name, at: now().elapsed))
        }
    }

    private func admit(
        _ connection: IngestConnection, _ key: Secret<String>, from remote: TransportAddress
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
            if let issued = grant.keyIssued {
                try await requireStanding(of: grant.sender.id, issued: issued, in: grant.stream)
            }
            let request = SessionRequest(
                ingesting: grant.stream, sender: grant.sender, received: now().elapsed,
                clientAddress: remote.ip)
            ingests.admit(try await admitIngest(request), on: connection)
            entrance?.tell(.accept, to: connection)
        } catch {
            entrance?.tell(.end(IngestEnd(error)), to: connection)
        }
    }

    /// A host revokes keys as they revoke links, and each replaces their own.
    private func requireStanding(
        of owner: ParticipantID, issued: Int, in stream: StreamID
    ) async throws(SessionRefusal) {
        do throws(StageRefusal) {
            guard try await linkRevocations(of: stream).allowsKey(of: owner, issued: issued) else {
                throw .rejected(.linkRevoked)
            }
        } catch {
            // Of a stream that nobody made yet, nothing was revoked.
            guard error != .unknownStream else { return }
            throw .stage(error)
        }
    }

    private func open(_ connection: IngestConnection, _ formats: IngestFormats) async {
        guard let admission = ingests.admission(of: connection) else { return }
        if let conversion = formats.conversion,
            !ingests.convert(connection, limit: live.limits.conversions)
        {
            let why = "this server makes no more pictures anew at once (--max-conversions)"
            entrance?.tell(.end(.unsupported(conversion.refusal(because: why))), to: connection)
            return
        }
        let sources = IngestInlet.Sources(formats)
        do throws(SessionRefusal) {
            let (session, worker) = try await openIngest(admission, sources: sources.plans)
            ingests.open(session, on: connection, formats)
            // It may have ended while its stage was told of it.
            guard live.sessions[session] != nil else { return endIngest(of: session, because: "ended") }
            log.info(
                "\(connection.protocolName).publishing",
                [
                    "stream": admission.request.stream, "session": session.label,
                    "video": formats.codec?.name ?? "none",
                    "width": formats.resolution?.width ?? 0, "height": formats.resolution?.height ?? 0,
                    "profile": formats.profile.map(Int.init) ?? 0, "audio": formats.hasAudio ? "AAC" : "none",
                    "converted": formats.conversion != nil,
                ])
            let inlet = IngestInlet(
                session: session, worker: worker, sources: sources, transcoder: transcoder,
                originals: desks.originals)
            entrance?.tell(.open(inlet), to: connection)
            if let status = ingests.status(of: connection) { await tell(status, of: connection) }
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

    /// Viewers of somebody who publishes by another protocol cannot begin, or go on, without a key frame.
    func makeKeyFrame(of session: SessionID) {
        guard let connection = ingests.connection(of: session) else { return }
        entrance?.tell(.makeKeyFrame, to: connection)
    }

    /// Of how many publishers pictures are made anew.
    package var conversionCount: Int { ingests.conversionCount }

    /// What comes of those who publish to a stream by another protocol than WebRTC; for others than the host their own.
    package func ingestStatuses(of stream: StreamID, for sender: Stage.Sender) -> [IngestStatus] {
        let isModerator = registry[stream]?.durableRecord?.isModerator(sender) ?? false
        return ingests.statuses(in: stream).filter { isModerator || $0.participant == sender.id }
    }

    // MARK: The host's page

    private func tell(_ status: IngestStatus, of connection: IngestConnection) async {
        guard let publisher = ingests.publisher(of: connection) else { return }
        await registry[publisher.stream]?.tellEncoder(status.json, of: status.participant)
    }

    private func tellEnd(
        of publisher: ParticipantID, in stream: StreamID, because reason: IngestEnd
    ) async {
        await registry[stream]?.tellEncoder(
            .null, of: publisher,
            end: .object(["reason": .string(reason.name), "detail": .string(reason.detail)]))
    }

    // MARK: The log

    private func note(
        _ reason: IngestEnd, of stream: StreamID?, _ connection: IngestConnection,
        from remote: TransportAddress
    ) {
        guard omissions.admitSessionLine(at: now().elapsed) else { return }
        let fields: KeyValuePairs<String, any CustomStringConvertible> = [
            "stream": stream?.description ?? "", "address": remote, "reason": reason.name,
            "detail": reason.detail,
        ]
        let name = connection.protocolName
        switch reason {
        case .byPublisher, .ended: log.info("\(name).ended", fields)
        case .malformed, .timedOut, .unknownApplication: log.debug("\(name).ended", fields)
        case .stalled, .unknownStream, .badKey, .overloaded, .refused, .unsupported:
            log.warning("\(name).refused", fields)
        }
    }

    private func note(_ notice: IngestNotice, of connection: IngestConnection) {
        let stream = ingests.publisher(of: connection)?.stream.description ?? ""
        log.warning("\(connection.protocolName).\(notice.code)", ["stream": stream, "detail": notice.text])
    }
}

extension IngestEnd {
    /// What a publisher is told of a refusal.
    fileprivate init(_ refusal: SessionRefusal) {
        switch refusal {
        case .stage(.rejected(.linkRevoked)):
            self = .badKey("This key was revoked or replaced: copy the new one from the studio.")
        case .stage(.rejected(let rejection)): self = .refused(rejection.explanation)
        case .stage(.unknownStream): self = .unknownStream
        case .stage: self = .refused("This cannot be done now. Try again.")
        case .overloaded, .stopping, .tooManySessions, .noPublisher, .unknownSession, .malformedOffer,
            .unsupportedOffer, .notAcceptable, .gated:
            self = .overloaded
        }
    }
}
