import Base
import Crypto
import Peer
import Wire

extension Worker {
    /// Performs a command from control.
    package func perform(
        _ command: WorkerCommand, at now: MonotonicTime, into sink: inout some DatagramSink & ~Copyable
    ) {
        switch command {
        case .open(let opening): open(opening, at: now, into: &sink)
        case .ingest(let id, let packets): ingest(packets, id, at: now, into: &sink)
        case .restartICE(let id, let credentials, let remote):
            guard let session = sessions[id] else { return }
            session.connection.restartICE(credentials, remote: remote, at: now, into: &sink)
            updateUfrags(of: session)
            settle(session, at: now, into: &sink)
        case .close(let id):
            guard let session = sessions[id] else { return }
            close(session, because: .ended, at: now, into: &sink)
        case .makeSource(let id, let order):
            guard let session = sessions[id] else { return }
            makeSource(session, order: order, at: now, into: &sink)
        case .attach(let id, let mid, let track, let maximumHeight):
            attach(id, mid: mid, track, maximumHeight: maximumHeight, at: now)
        case .favour(let id, let mids): sessions[id]?.favour(mids, at: now)
        case .limit(let id, let mid, let maximumHeight):
            sessions[id]?.slots.first { $0.plan.mid == mid }?.limit(to: maximumHeight, at: now)
        case .prefer(let id, let preferences): sessions[id]?.prefer(preferences, at: now)
        case .setProgramme(let stream, let tracks): setProgramme(stream, tracks, at: now)
        case .seat(let id, let pair, let stream, let isPreview, let requested):
            seat(id, pair: pair, on: stream, isPreview: isPreview, requested: requested, at: now)
        case .flush(let stream): flush(stream, at: now)
        case .fence(let number): tell(.passed(number))
        case .sendControl(let id, let message): sendControl(message, to: id, at: now, into: &sink)
        case .setDataAccess(let stream, let access): audience.setAccess(access, of: stream)
        case .openTap(let opening): openTap(opening, at: now)
        case .closeTap(let id): closeTap(id)
        case .limitTap(let id, let maximumHeight): taps[id]?.limitTap(id, to: maximumHeight, at: now)
        case .demandKeyFrame(let id): demandKeyFrame(forTap: id, at: now)
        case .openInjection(let opening): open(opening)
        case .inject(let id, let packets): inject(packets, id, at: now, into: &sink)
        case .closeInjection(let id): close(id, at: now)
        case .measure(let id, let inquiry):
            guard let session = sessions[id] else { return }
            inquiry.answer(session.measurements(at: now))
        case .measureTrack(let id, let inquiry):
            guard let session = published[id]?.publisher else { return }
            inquiry.answer(session.measurements(of: id, at: now))
        case .capture(let opening, let inquiry): open(opening, inquiry, at: now)
        case .dismissFollowers(let stream):
            guard let programme = programmes[stream] else { return }
            for seat in programme.followers where seat.session.follows != nil {
                close(seat.session, because: .ended, at: now, into: &sink)
            }
        }
    }

    /// Closes all sessions; called once, before the thread ends.
    package func closeAll(at now: MonotonicTime, into sink: inout some DatagramSink & ~Copyable) {
        for session in sessions.values.sorted(by: { $0.order < $1.order }) {
            close(session, because: .ended, at: now, into: &sink)
        }
    }

    private func open(
        _ opening: SessionOpening, at now: MonotonicTime, into sink: inout some DatagramSink & ~Copyable
    ) {
        guard sessions[opening.id] == nil else { return }
        let connection = PeerConnection(
            plan: opening.plan, localCredentials: opening.localCredentials,
            environment: environment.connection,
            at: now)
        let session = Session(
            opening, connection: connection, firstTrack: nextTrack, wakeList: wakeList, fanOut: fanOut,
            recorder: recorder, renditions: renditions, links: links, using: &environment.random, at: now)
        nextTrack &+= UInt64(session.sources.count)
        for source in session.sources { published[source.track.key.track] = source.track }
        register(session)
        counters.sessionsOpened &+= 1
        guard opening.plan.isIngested else { return schedule(session, at: now) }
        if session.progress.noteCheck(at: now) { tell(.checked(session.id)) }
        settle(session, at: now, into: &sink)
    }

    /// Accepts media that a session's publisher sent by another protocol.
    private func ingest(
        _ packets: InjectedPackets, _ id: SessionID, at now: MonotonicTime,
        into sink: inout some DatagramSink & ~Copyable
    ) {
        guard let session = sessions[id], session.plan.isIngested else { return }
        session.receive(packets, at: now, into: &sink)
        noteMedia(of: session, at: now)
    }

    func close(
        _ session: Session, because reason: PeerConnection.CloseReason, at now: MonotonicTime,
        into sink: inout some DatagramSink & ~Copyable
    ) {
        session.connection.close(because: reason, at: now, into: &sink)
        remove(session, because: reason, at: now, into: &sink)
    }

    /// Removes a session whose connection has ended, and everything it published.
    func remove(
        _ session: Session, because reason: PeerConnection.CloseReason, at now: MonotonicTime,
        into sink: inout some DatagramSink & ~Copyable
    ) {
        if capture?.session === session { endCapture() }
        session.gauge.close(with: session.measurements(at: now))
        forget(session, at: now)
        leaveStage(session, at: now, into: &sink)
        if let stream = session.hearsDataOf { audience.leave(session.id, stream) }
        session.detachAll()
        leaveProgrammes(session, at: now)
        for source in session.sources {
            published[source.track.key.track] = nil
            renditions.forget(source.track.key.track)
            closeTaps(of: source.track)
            source.track.flush(at: now)
        }
        counters.media.add(session.totals)
        tell(.closed(session.id, reason))
    }
}
