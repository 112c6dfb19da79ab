import Base

/// Presence of participants, and timers.
extension Stage {
    /// One connection of a participant.
    package enum Connection: Hashable, Sendable {
        /// A WebSocket that follows the stream's state.
        case socket(UInt64)
        /// A peer connection.
        case session(SessionID)
    }

    /// Records a new connection.
    /// - Parameter sender: nil for an anonymous viewer.
    package mutating func connect(_ sender: Sender?, by connection: Connection, at now: Moment) -> Outcome {
        guard let sender else {
            presence.addAnonymous(connection)
            return Outcome()
        }
        var outcome = Outcome()
        let isNew = presence.connect(sender, by: connection)
        if isNew { outcome.events.append(.joined(sender.id, name: sender.name)) }
        if sender.id == record.host, record.origin == .made { hostDeadline = nil }
        return outcome
    }

    /// Records that a connection has closed; a participant has left only when all were closed for the grace time.
    /// - Parameter id: nil for an anonymous viewer.
    package mutating func disconnect(_ id: ParticipantID?, by connection: Connection, at now: Moment) {
        guard let id else {
            presence.removeAnonymous(connection)
            return
        }
        guard presence.disconnect(id, by: connection, until: now.elapsed + Self.presenceGrace)
        else { return }
        if id == record.host, record.origin == .made, record.phase == .live { startHostDeadline(at: now) }
    }

    /// Records the source that viewers get from now on; nil for none.
    ///
    /// A published stream goes live with its first source. It ends when its host's source is lost; if the lost source
    /// was not the host's, it waits `sourceGrace` for another one.
    package mutating func setSource(_ new: Source?, at now: Moment) -> Outcome {
        let old = source
        source = new
        sourceDeadline = nil
        guard record.origin == .published, record.phase != .ended else { return Outcome() }
        var outcome = Outcome()
        if let new {
            hostDeadline = nil
            if record.phase == .backstage {
                outcome.changes.append(.wentLive(now.wall))
                outcome.events.append(.live)
            }
            if let owner = new.owner, owner != record.host,
                new.isSuccessor || record.speakers[owner] == nil
            {
                replaceHost(by: owner, name: new.name, at: now, into: &outcome)
            }
        } else if record.phase == .live, old != nil, old?.owner == nil || old?.owner == record.host {
            outcome.end(at: now, because: .sourceLeft)
        } else if old != nil {
            hostDeadline = now.elapsed + Self.sourceGrace
        }
        for change in outcome.changes { record.apply(change) }
        follow(outcome.changes, at: now)
        return outcome
    }

    /// Makes the source's owner the host of a published stream; the former host, if still connected, stays as a
    /// speaker when the new one was a speaker.
    private func replaceHost(
        by owner: ParticipantID, name: String?, at now: Moment, into outcome: inout Outcome
    ) {
        let (former, member) = (record.host, record.hostMember)
        outcome.changes.append(.hostReplaced(owner, StageRecord.Member(name: name, since: now.wall)))
        guard record.speakers[owner] != nil, presence.isConnected(former) else { return }
        outcome.changes.append(.promoted(former, member))
        outcome.events.append(.promoted(former))
    }

    // MARK: Time

    /// When `advance` has to run; nil if nothing is due.
    package var deadline: MonotonicTime? {
        var next = presence.deadline
        if record.phase != .ended {
            for time in [hostDeadline, doorsDeadline, sourceDeadline].compactMap({ $0 }) {
                next = min(next ?? time, time)
            }
        }
        return next
    }

    private var doorsDeadline: MonotonicTime? {
        record.phase == .backstage && !areDoorsOpen ? doorsOpenAt : nil
    }

    /// Performs what is due: departures, the end of a stream without its host or source, what follows from its source,
    /// and the opening of doors.
    package mutating func advance(to now: Moment) -> Outcome {
        let isSourceDue = sourceDeadline.map { record.phase != .ended && $0 <= now.elapsed } ?? false
        let renewed = isSourceDue ? setSource(source, at: now) : Outcome()
        var outcome = Outcome()
        for id in presence.takeDeparted(by: now.elapsed) { depart(id, into: &outcome) }
        if let hostDeadline, record.phase != .ended, hostDeadline <= now.elapsed {
            self.hostDeadline = nil
            if record.origin == .published, presence.isConnected(record.host) {
                // The host is on stage without camera and microphone, so the stream gets another grace time.
                self.hostDeadline = now.elapsed + Self.sourceGrace
            } else {
                outcome.end(at: now, because: record.origin == .made ? .hostLeft : .sourceLeft)
            }
        }
        for change in outcome.changes { record.apply(change) }
        follow(outcome.changes, at: now)
        openDoors(at: now)
        // What follows from the source is in the record already.
        outcome.changes = renewed.changes + outcome.changes
        outcome.effects = renewed.effects + outcome.effects
        outcome.events = renewed.events + outcome.events
        return outcome
    }

    /// Records that a participant has left, which frees their hand, invitation and place on the stage.
    mutating func depart(_ id: ParticipantID, into outcome: inout Outcome) {
        guard presence.contains(id) || record.speakers[id] != nil else { return }
        presence.remove(id)
        outcome.events.append(.left(id))
        guard id != record.host else { return }
        if record.speakers[id] != nil || record.hands[id] != nil || record.invitations[id] != nil {
            outcome.changes.append(.left(id))
        }
    }

    /// Starts and stops timers, and opens doors, as changes require.
    mutating func follow(_ changes: [StageChange], at now: Moment) {
        for change in changes {
            switch change {
            case .wentLive:
                if record.origin == .made, !presence.isConnected(record.host) { startHostDeadline(at: now) }
            case .edited: openDoors(at: now)
            case .ended: hostDeadline = nil
            default: break
            }
        }
    }

    /// Starts the time after which a live stream ends without its host.
    mutating func startHostDeadline(at now: Moment) {
        hostDeadline = now.elapsed + .seconds(record.details.hostGraceSeconds)
    }

    /// Computes whether the doors are open, or when they will open.
    mutating func openDoors(at now: Moment) {
        guard let time = record.details.admissionTime else {
            (areDoorsOpen, doorsOpenAt) = (false, nil)
            return
        }
        areDoorsOpen = time <= now.wall
        doorsOpenAt = areDoorsOpen ? nil : now.elapsed(at: time)
    }
}

extension StageOutcome {
    /// Ends the stream: the change to store, the effect and the event.
    mutating func end(at now: Moment, because reason: StageRecord.EndReason) {
        changes.append(.ended(now.wall, reason))
        effects.append(.close)
        events.append(.ended(reason))
    }
}
