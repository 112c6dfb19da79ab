import Base
import Peer
import Wire

/// A session's control channel, and its data tracks: channels labeled `data:NAME`.
///
/// Data tracks are passed on to all sessions on the stage, and to the audience if the stream allows it.
extension Worker {
    func take(
        _ event: DataChannelEvent, of session: Session, at now: MonotonicTime,
        into sink: inout some DatagramSink & ~Copyable
    ) {
        switch event {
        case .opened(let stream, let open):
            if open.label == DataChannelTable.controlLabel, session.channels.control == nil {
                session.channels.control = stream
                tell(.controlOpened(session.id))
                session.retellRests()
            } else if open.label.hasPrefix(SessionChannels.dataPrefix), maySend(open.label, session),
                session.channels.sends(open.label, on: stream, at: now)
            {
                broadcast(.opened(open), of: session, label: open.label, at: now, into: &sink)
            } else {
                session.connection.closeDataChannel(stream, at: now, into: &sink)
            }
        case .message(let stream, let message):
            receive(message, on: stream, of: session, at: now, into: &sink)
        case .closed(let stream):
            if session.channels.control == stream { session.channels.control = nil }
            if let label = session.channels.closed(stream) {
                broadcast(.closed, of: session, label: label, at: now, into: &sink)
            }
        }
    }

    private func receive(
        _ message: DataChannelMessage, on stream: UInt16, of session: Session, at now: MonotonicTime,
        into sink: inout some DatagramSink & ~Copyable
    ) {
        let size = message.bytes.count
        if stream == session.channels.control {
            guard size <= SessionChannels.maximumControlMessage,
                session.channels.controlGate.admit(bytes: size, at: now)
            else { return counters.messagesDropped &+= 1 }
            counters.messagesReceived &+= 1
            return tell(.controlMessage(session.id, message))
        }
        guard let label = session.channels.label(of: stream) else { return counters.messagesDropped &+= 1 }
        guard session.channels.dataGate.admit(bytes: size, at: now) else {
            counters.messagesDropped &+= 1
            // Messages from the audience are unreliable.
            guard session.stage != nil else { return }
            // Messages on unreliable channels are dropped; a reliable channel cannot go on after a loss.
            guard session.connection.dataChannel(stream)?.delivery.reliability == .reliable else { return }
            session.connection.closeDataChannel(stream, at: now, into: &sink)
            return take(.closed(stream), of: session, at: now, into: &sink)
        }
        counters.messagesReceived &+= 1
        if session.stage == nil {
            say(message, by: session, label: label, at: now, into: &sink)
        } else {
            broadcast(.message(message), of: session, label: label, at: now, into: &sink)
        }
    }

    /// Makes control send the whole state again to a client that missed messages, once it has received all others.
    func retellIfMissed(_ session: Session) {
        guard session.channels.hasMissed, let control = session.channels.control,
            session.connection.buffered(control) == 0
        else { return }
        session.channels.hasMissed = false
        tell(.controlOpened(session.id))
        session.retellRests()
    }

    /// Sends a message on the control channel of a session.
    func sendControl(
        _ message: DataChannelMessage, to id: SessionID, at now: MonotonicTime,
        into sink: inout some DatagramSink & ~Copyable
    ) {
        guard let session = sessions[id], let stream = session.channels.control else { return }
        send(message, on: stream, of: session, at: now, into: &sink)
        settle(session, at: now, into: &sink)
    }

    private func send(
        _ message: DataChannelMessage, on stream: UInt16, of session: Session, at now: MonotonicTime,
        into sink: inout some DatagramSink & ~Copyable
    ) {
        do {
            try session.connection.send(message, on: stream, at: now, into: &sink)
            counters.messagesSent &+= 1
        } catch {
            counters.messagesDropped &+= 1
            guard error == .bufferFull else { return }
            guard stream != session.channels.control else { return session.channels.hasMissed = true }
            guard session.connection.dataChannel(stream)?.delivery.reliability == .reliable else { return }
            // The client is too slow for a reliable channel.
            session.connection.closeDataChannel(stream, at: now, into: &sink)
            session.channels.forgetIncoming(stream)
        }
    }

    // MARK: Data tracks

    private func maySend(_ label: String, _ session: Session) -> Bool {
        if session.stage != nil { return true }
        guard session.participant != nil, let stream = session.hearsDataOf else { return false }
        return audience.maySend(label, in: stream)
    }

    /// Passes on a viewer's message on a track; it contains the sender, because one channel carries all viewers'
    /// messages.
    private func say(
        _ message: DataChannelMessage, by session: Session, label: String, at now: MonotonicTime,
        into sink: inout some DatagramSink & ~Copyable
    ) {
        guard case .string(let bytes) = message, let sender = session.participant,
            let stream = session.hearsDataOf,
            audience.admit(label, bytes: bytes.count, in: stream, at: now)
        else { return counters.messagesDropped &+= 1 }
        let text = JSON.object([
            "from": .string(sender.description), "text": .string(String(decoding: bytes, as: UTF8.self)),
        ])
        let item = DataTrackItem(
            stage: stream, sender: sender, session: session.id, label: label,
            delivery: DataChannelDelivery().forAudience, event: .said(.string(text.bytes)))
        links?.tellAll(.data(item))
        deliver(item, at: now, into: &sink)
    }

    private func broadcast(
        _ event: DataTrackEvent, of session: Session, label: String, at now: MonotonicTime,
        into sink: inout some DatagramSink & ~Copyable
    ) {
        guard let stage = session.stage, let sender = session.participant else { return }
        let item = DataTrackItem(
            stage: stage, sender: sender, session: session.id, label: label,
            delivery: session.channels.delivery(of: label, in: session.connection), event: event)
        links?.tellAll(.data(item))
        deliver(item, at: now, into: &sink)
    }

    /// Delivers an event of a data track to all others on this worker who receive the track.
    func deliver(
        _ item: DataTrackItem, at now: MonotonicTime, into sink: inout some DatagramSink & ~Copyable
    ) {
        // From another worker that has not heard yet that the track was closed.
        if case .said = item.event, !audience.hasTrack(item.label, in: item.stage) { return }
        for id in (stages[item.stage] ?? []) + audience.receivers(of: item, at: now) {
            // This does not wait for the control channel: a client treats it as open once the association is
            // established, and expects to receive everything from then on.
            guard let session = sessions[id], session.connection.hasDataChannels else { continue }
            if case .closed = item.event {
                closeAudienceChannel(for: item, of: session, at: now, into: &sink)
            }
            guard session.id != item.session else { continue }
            var key = SessionChannels.Incoming(session: item.session, label: item.label)
            if case .said = item.event { key = SessionChannels.Incoming(session: nil, label: item.label) }
            switch item.event {
            case .opened: _ = incoming(key, item, of: session, at: now, into: &sink)
            case .message(let message), .said(let message):
                guard let stream = incoming(key, item, of: session, at: now, into: &sink) else { continue }
                send(message, on: stream, of: session, at: now, into: &sink)
            case .closed:
                guard let stream = session.channels.incoming.removeValue(forKey: key) else { continue }
                session.connection.closeDataChannel(stream, at: now, into: &sink)
            }
            settle(session, at: now, into: &sink)
        }
    }

    /// Closes the channel on which a session receives what viewers say on a track, once no session on stage has that
    /// track: an app that uses a new label again and again would use up all channels.
    private func closeAudienceChannel(
        for item: DataTrackItem, of session: Session, at now: MonotonicTime,
        into sink: inout some DatagramSink & ~Copyable
    ) {
        let key = SessionChannels.Incoming(session: nil, label: item.label)
        guard !audience.hasTrack(item.label, in: item.stage), session.connection.state == .connected,
            let stream = session.channels.incoming.removeValue(forKey: key)
        else { return }
        session.connection.closeDataChannel(stream, at: now, into: &sink)
        settle(session, at: now, into: &sink)
    }

    /// The channel to `session` for another session's data track, opened if there is none; nil if the client refused
    /// it.
    private func incoming(
        _ key: SessionChannels.Incoming, _ item: DataTrackItem, of session: Session, at now: MonotonicTime,
        into sink: inout some DatagramSink & ~Copyable
    ) -> UInt16? {
        if let known = session.channels.incoming[key] {
            return session.channels.isRefused(known) ? nil : known
        }
        let open = DataChannelOpen(
            label: item.label, subprotocol: key.session == nil ? "" : item.sender.description,
            delivery: session.stage == nil ? item.delivery.forAudience : item.delivery)
        do {
            let stream = try session.connection.openDataChannel(open, at: now, into: &sink)
            session.channels.incoming[key] = stream
            return stream
        } catch {
            counters.messagesDropped &+= 1
            return nil
        }
    }

    /// Ends the data tracks of a session that has ended.
    func endDataTracks(
        of session: Session, at now: MonotonicTime, into sink: inout some DatagramSink & ~Copyable
    ) {
        for label in session.channels.takeLabels() {
            broadcast(.closed, of: session, label: label, at: now, into: &sink)
        }
    }
}

extension DataChannelDelivery {
    /// The same with a lifetime of 2 s instead of reliable delivery, because slow viewers would make the server keep
    /// every message.
    fileprivate var forAudience: DataChannelDelivery {
        guard reliability == .reliable else { return self }
        return DataChannelDelivery(isOrdered: isOrdered, reliability: .lifetime(milliseconds: 2_000))
    }
}
