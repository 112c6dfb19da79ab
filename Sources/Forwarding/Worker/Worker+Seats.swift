import Base
import Peer

/// Seats: which session carries which stream's programme.
extension Worker {
    /// Puts a seat of a feed session on a stream, or on none; the previous stream stops immediately.
    ///
    /// A session that is not connected yet occupies its seats once it is.
    /// - Parameter requested: when the viewer requested it; nil if the switch is not measured.
    func seat(
        _ id: SessionID, pair: Int, on stream: StreamID?, isPreview: Bool, requested: MonotonicTime?,
        at now: MonotonicTime
    ) {
        guard let session = sessions[id], session.seats.indices.contains(pair) else { return }
        let seat = session.seats[pair]
        let isSame = seat.stream == stream
        guard !isSame || seat.isPreview != isPreview else { return }
        if !isSame {
            leave(seat, at: now)
            counters.seatsTaken &+= stream == nil ? 0 : 1
        }
        seat.reserve(stream, isPreview: isPreview, requested: requested)
        guard session.connection.state == .connected else { return }
        if isSame {
            if isPreview, let audio = seat.audio { empty(audio, at: now) }
            fill(seat, at: now)
        } else {
            occupy(seat, at: now)
        }
        session.noteSwitchTimes(at: now)
    }

    /// Follows the programme that the seat is reserved for.
    func occupy(_ seat: Seat, at now: MonotonicTime) {
        guard let stream = seat.stream else { return }
        let programme = programme(of: stream)
        if programme.followers.isEmpty { requests.begin(.programme(stream)) }
        programme.follow(seat)
        fill(seat, at: now)
    }

    /// Attaches the programme's tracks to the seat's slots.
    func fill(_ seat: Seat, at now: MonotonicTime) {
        guard let stream = seat.stream, let programme = programmes[stream] else { return }
        seat.video?.thin(seat.isPreview, at: now)
        seat.video?.limit(to: seat.maximumHeight, at: now)
        for kind in [MediaKind.audio, .video] {
            guard let slot = seat.slot(kind) else { continue }
            let track = programme.chosen.first { $0.plan.kind == kind }
            guard track != nil || slot.assigned != nil else { continue }
            attach(
                seat.session.id, mid: slot.plan.mid, track,
                maximumHeight: kind == .video ? seat.maximumHeight : nil, at: now)
            if let track { relayed[track.key]?.forget(before: flushed[stream]) }
        }
        programme.connect(seat, at: now)
    }

    /// Stops the seat's slots immediately, and leaves its programme.
    func leave(_ seat: Seat, at now: MonotonicTime) {
        guard let stream = seat.stream else { return }
        seat.reserve(nil, isPreview: false, requested: nil)
        for slot in seat.slots { empty(slot, at: now) }
        guard let programme = programmes[stream], programme.unfollow(seat) else { return }
        if programme.followers.isEmpty { requests.letLinger(.programme(stream), at: now) }
        forgetIfEmpty(stream)
    }

    /// Stops a slot immediately, and releases the track that control attached to it.
    private func empty(_ slot: Slot, at now: MonotonicTime) {
        slot.detach()
        guard let key = slot.assigned else { return }
        slot.assigned = nil
        giveBack(key, at: now)
    }

    /// Forgets cached pictures of a stream, because new viewers may not see them.
    func flush(_ stream: StreamID, at now: MonotonicTime) {
        if links != nil {
            flushed = flushed.filter { now < $0.value + GOPCache.maximumAge }
            flushed[stream] = now
        }
        guard let programme = programmes[stream] else { return }
        programme.source?.tracks.forEach { $0.flush(at: now) }
        for track in programme.chosen {
            let isOwn = track.key.worker == (links?.index ?? 0)
            (isOwn ? published[track.key.track] : relayed[track.key])?.flush(at: now)
        }
    }
}
