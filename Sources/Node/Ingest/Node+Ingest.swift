import Base
import Ingest
import Net
import Stage
import Wire

/// Publishers by RTMP and SRT, to whom the rules of WHIP apply.
extension Node {
    /// Handles an event of a publisher's connection.
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
        // Read before the connection is removed from the register.
        case .ended(let reason, let remote):
            let publisher = ingests.publisher(of: connection)
            let session = ingests.lose(connection)
            note(reason, of: publisher?.stream, connection, from: remote)
            if let publisher { await tellEnd(of: publisher.id, in: publisher.stream, because: reason) }
            guard let session else { return }
            await perform(live.end(session, because: reason.name, at: now().elapsed))
        }
    }

    /// Checks a publisher's key, and asks the stream's stage whether they may publish.
    ///
    /// The answer goes to the connection as `accept` or `end`.
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
            // Before the stage is asked, which may make the stream.
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

    /// Throws if a stream key was revoked or replaced after it was made.
    ///
    /// A host revokes keys together with invitation links; a publisher who gets a new key replaces their own old one.
    private func requireStanding(
        of owner: ParticipantID, issued: Int, in stream: StreamID
    ) async throws(SessionRefusal) {
        do throws(StageRefusal) {
            guard try await linkRevocations(of: stream).allowsKey(of: owner, issued: issued) else {
                throw .rejected(.linkRevoked)
            }
        } catch {
            // Nothing was revoked of a stream that does not exist yet.
            guard error != .unknownStream else { return }
            throw .stage(error)
        }
    }

    /// Creates the session of an admitted publisher, now that its formats are known, and opens its inlet.
    private func open(_ connection: IngestConnection, _ formats: IngestFormats) async {
        guard let admission = ingests.admission(of: connection) else { return }
        // Re-encoding is expensive, so a publisher that needs it is refused when the limit is reached.
        if let conversion = formats.conversion,
            !ingests.convert(connection, limit: live.limits.conversions)
        {
            let why = "the server can't convert more videos at once (--max-conversions)"
            entrance?.tell(.end(.unsupported(conversion.refusal(because: why))), to: connection)
            return
        }
        let sources = IngestInlet.Sources(formats)
        do throws(SessionRefusal) {
            let (session, worker) = try await openIngest(admission, sources: sources.plans)
            ingests.open(session, on: connection, formats)
            // The session may have ended while its stage was being notified.
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

    /// Closes the connection of a session that the server has ended.
    func endIngest(of session: SessionID, because reason: String) {
        guard let connection = ingests.end(session) else { return }
        let text =
            reason == "replaced"
            ? "Another publisher has taken over this stream." : "The stream or this session has ended."
        entrance?.tell(.end(.ended(text)), to: connection)
    }

    /// Requests a key frame for the viewers of a publisher by RTMP or SRT; only a re-encoded picture can provide one.
    func makeKeyFrame(of session: SessionID) {
        guard let connection = ingests.connection(of: session) else { return }
        entrance?.tell(.makeKeyFrame, to: connection)
    }

    /// The number of publishers whose pictures are re-encoded.
    package var conversionCount: Int { ingests.conversionCount }

    /// The status of a stream's publishers by RTMP and SRT; all of them for a host, else only the sender's own.
    package func ingestStatuses(of stream: StreamID, for sender: Stage.Sender) -> [IngestStatus] {
        let isModerator = registry[stream]?.durableRecord?.isModerator(sender) ?? false
        return ingests.statuses(in: stream).filter { isModerator || $0.participant == sender.id }
    }

    // MARK: The host's page

    /// Sends a publisher's status to the publisher and to the stream's host.
    private func tell(_ status: IngestStatus, of connection: IngestConnection) async {
        guard let publisher = ingests.publisher(of: connection) else { return }
        await registry[publisher.stream]?.tellEncoder(status.json, of: status.participant)
    }

    /// Notifies both that the publisher is gone, and why.
    private func tellEnd(
        of publisher: ParticipantID, in stream: StreamID, because reason: IngestEnd
    ) async {
        await registry[stream]?.tellEncoder(
            .null, of: publisher,
            end: .object(["reason": .string(reason.name), "detail": .string(reason.detail)]))
    }

    // MARK: The log

    /// Logs the end of a connection, at a level that depends on the reason.
    private func note(
        _ reason: IngestEnd, of stream: StreamID?, _ connection: IngestConnection,
        from remote: TransportAddress
    ) {
        // Strangers control how often connections end, so these lines are limited.
        guard omissions.admitSessionLine(at: now().elapsed) else { return }
        let fields: KeyValuePairs<String, any CustomStringConvertible> = [
            "stream": stream?.description ?? "", "address": remote, "reason": reason.name,
            "detail": reason.detail,
        ]
        let name = connection.protocolName
        switch reason {
        case .byPublisher, .ended: log.info("\(name).ended", fields)
        // Port scans end like this, so these lines are for debugging only.
        case .malformed, .timedOut, .unknownApplication: log.debug("\(name).ended", fields)
        case .stalled, .unknownStream, .badKey, .overloaded, .refused, .unsupported:
            log.warning("\(name).refused", fields)
        }
    }

    /// Logs advice for an encoder's settings.
    private func note(_ notice: IngestNotice, of connection: IngestConnection) {
        let stream = ingests.publisher(of: connection)?.stream.description ?? ""
        log.warning("\(connection.protocolName).\(notice.code)", ["stream": stream, "detail": notice.text])
    }
}

extension IngestEnd {
    /// The reason that a publisher is given for a refusal, in words for the person who set up the encoder.
    fileprivate init(_ refusal: SessionRefusal) {
        switch refusal {
        case .stage(.rejected(.linkRevoked)):
            self = .badKey("This key was revoked or replaced. Copy the new one from the studio.")
        case .stage(.rejected(let rejection)): self = .refused(rejection.explanation)
        case .stage(.unknownStream): self = .unknownStream
        case .stage: self = .refused("This can't be done now. Try again.")
        case .overloaded, .stopping, .tooManySessions, .noPublisher, .unknownSession, .malformedOffer,
            .unsupportedOffer, .notAcceptable, .gated:
            self = .overloaded
        }
    }
}
