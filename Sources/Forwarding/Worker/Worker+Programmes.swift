import Base
import Peer
import Wire

extension Worker {
    /// Connects a session to its seats, its stage and its stream, once it can send and receive.
    func begin(_ session: Session, at now: MonotonicTime, into sink: inout some DatagramSink & ~Copyable) {
        counters.sessionsConnected &+= 1
        for seat in session.seats { occupy(seat, at: now) }
        if let stage = session.stage {
            stages[stage, default: []].append(session.id)
            tell(.published(session.id, session.published))
        }
        if let stream = session.hearsDataOf { audience.join(session.id, stream) }
        if session.publishes != nil { present(session, at: now, into: &sink) }
    }

    /// Gives viewers the tracks that control chose; slots change at each track's next entry point.
    func setProgramme(_ stream: StreamID, _ tracks: [PublishedTrack], at now: MonotonicTime) {
        let programme = programme(of: stream)
        programme.choose(tracks)
        for follower in programme.followers { fill(follower, at: now) }
        forgetIfEmpty(stream)
    }

    /// Removes a session that has ended from its stage.
    func leaveStage(
        _ session: Session, at now: MonotonicTime, into sink: inout some DatagramSink & ~Copyable
    ) {
        giveBackTracks(of: session, at: now)
        guard let stage = session.stage else { return }
        endDataTracks(of: session, at: now, into: &sink)
        stages[stage]?.removeAll { $0 == session.id }
        if stages[stage]?.isEmpty == true { stages[stage] = nil }
    }

    /// Makes a session on a stage the stream's source, or lets it become the source once it is connected.
    func makeSource(
        _ session: Session, order: UInt64, at now: MonotonicTime,
        into sink: inout some DatagramSink & ~Copyable
    ) {
        guard session.publishes == nil, let stage = session.stage else { return }
        (session.publishes, session.order) = (stage, order)
        if stages[stage]?.contains(session.id) == true { present(session, at: now, into: &sink) }
    }

    /// Makes `session` the source of its stream, here and on the other workers.
    private func present(
        _ session: Session, at now: MonotonicTime, into sink: inout some DatagramSink & ~Copyable
    ) {
        guard let stream = session.publishes else { return }
        let programme = programme(of: stream)
        if let source = programme.source, source.order > session.order {
            return close(session, because: .replaced, at: now, into: &sink)
        }
        let source = Programme.Source(
            session: session, order: session.order, tracks: session.sources.map(\.track))
        links?.tellAll(.present(stream, order: session.order, session.published))
        if let previous = programme.change(to: source, at: now) { retire(previous, at: now, into: &sink) }
    }

    /// Closes a source that was replaced, or releases its copies.
    private func retire(
        _ source: Programme.Source, at now: MonotonicTime, into sink: inout some DatagramSink & ~Copyable
    ) {
        guard let session = source.session else { return forget(source.tracks, at: now) }
        close(session, because: .replaced, at: now, into: &sink)
    }

    /// Removes a session that has ended from its programmes.
    func leaveProgrammes(_ session: Session, at now: MonotonicTime) {
        for seat in session.seats { leave(seat, at: now) }
        guard let stream = session.publishes, let programme = programmes[stream],
            programme.source?.session === session
        else { return }
        programme.loseSource()
        links?.tellAll(.withdraw(stream, order: session.order))
        forgetIfEmpty(stream)
    }

    /// The programme of a stream, created on first use.
    func programme(of stream: StreamID) -> Programme {
        if let known = programmes[stream] { return known }
        let programme = Programme()
        programmes[stream] = programme
        return programme
    }

    /// Forgets a programme that nobody uses, unless it lingers: other workers still send it, and say only once who
    /// publishes it.
    func forgetIfEmpty(_ stream: StreamID) {
        guard !requests.isLingering(.programme(stream)) else { return }
        if programmes[stream]?.isEmpty == true { programmes[stream] = nil }
    }

    // MARK: Other workers

    /// Processes the batches of the other workers.
    func receiveFromWorkers(at now: MonotonicTime, into sink: inout some DatagramSink & ~Copyable) {
        guard let links else { return }
        endLingering(at: now)
        for (sender, batch) in links.takeAll() {
            for item in batch.items {
                if case .packet(let packet) = item {
                    take(packet, batch.bytes.span, from: sender, at: now, into: &sink)
                } else {
                    take(item, from: sender, at: now, into: &sink)
                }
            }
        }
    }

    private func take(
        _ packet: RelayedPacket, _ bytes: Span<UInt8>, from sender: Int, at now: MonotonicTime,
        into sink: inout some DatagramSink & ~Copyable
    ) {
        guard let track = relayed[TrackKey(worker: sender, track: packet.track)],
            packet.range.upperBound <= bytes.count
        else { return counters.relayedInVain &+= 1 }
        counters.packetsRelayed &+= 1
        counters.bytesRelayed &+= UInt64(packet.range.count)
        track.receiveRelayed(packet, bytes.extracting(packet.range), at: now, into: &sink)
    }

    private func take(
        _ item: RelayBatch.Item, from sender: Int, at now: MonotonicTime,
        into sink: inout some DatagramSink & ~Copyable
    ) {
        switch item {
        case .want(let stream, let isWanted):
            let programme = programme(of: stream)
            let new = programme.setWanted(isWanted, by: sender)
            if isWanted, let session = programme.source?.session {
                links?.tell(.present(stream, order: session.order, session.published), to: sender)
            }
            for track in new { track.backfill(sender, over: links, at: now) }
            forgetIfEmpty(stream)
        case .present(let stream, let order, let tracks):
            take(tracks, order: order, of: stream, from: sender, at: now, into: &sink)
        case .withdraw(let stream, let order):
            guard let programme = programmes[stream], let source = programme.source, source.order == order,
                source.session == nil
            else { return }
            programme.loseSource()
            forget(source.tracks, at: now)
            forgetIfEmpty(stream)
        case .demandKeyFrame(let id, let layer, let reason):
            published[id]?.demandKeyFrame(of: layer, for: reason, at: now)
        case .needRendition(let id): published[id]?.needRendition(at: now)
        case .takeLayers(let id, let layers): published[id]?.noteTaken(layers, at: now)
        case .rest(let id, let rests):
            relayed[TrackKey(worker: sender, track: id)]?.setRests(rests, at: now)
        case .endRenditions(let id): relayed[TrackKey(worker: sender, track: id)]?.endRenditions()
        case .subscribe(let id, let isSubscribed):
            guard let track = published[id] else { return }
            let isNew = isSubscribed && !track.isRelayed(to: sender)
            track.setSubscribed(isSubscribed, by: sender)
            if isNew { track.backfill(sender, over: links, at: now) }
        case .data(let item): deliver(item, at: now, into: &sink)
        case .packet: break
        }
    }

    /// Releases a programme's copies, unless slots of a stage use them too.
    private func forget(_ tracks: [Track], at now: MonotonicTime) {
        for track in tracks {
            relayed.removeFromProgramme(track.key)
            forgetCopyIfUnused(track.key)
            track.flush(at: now)
        }
    }

    /// Accepts a publisher on another worker, if it is later than the present one.
    ///
    /// Otherwise that worker is told of the present one: without viewers it has not heard of it, and would keep a
    /// publisher who is seen by nobody.
    private func take(
        _ published: [PublishedTrack], order: UInt64, of stream: StreamID, from sender: Int,
        at now: MonotonicTime,
        into sink: inout some DatagramSink & ~Copyable
    ) {
        guard let programme = programmes[stream] else { return }
        guard (programme.source?.order ?? 0) < order else {
            if let session = programme.source?.session, session.order > order {
                links?.tell(.present(stream, order: session.order, session.published), to: sender)
            }
            return
        }
        let tracks = published.compactMap { relayed.add($0, toProgrammeOf: stream) }
        for track in tracks { track.forget(before: flushed[stream]) }
        let source = Programme.Source(session: nil, order: order, tracks: tracks)
        if let previous = programme.change(to: source, at: now) { retire(previous, at: now, into: &sink) }
    }
}
