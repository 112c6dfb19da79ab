import Base
import Forwarding
import Peer

extension Node {
    // MARK: What others may know

    /// Live streams first, then by the time they started, newest first; ties by name.
    package func streamSnapshots() -> [StreamSnapshot] {
        streams.values.map(\.snapshot).sorted { left, right in
            let ranks = (left.state == .live ? 0 : 1, right.state == .live ? 0 : 1)
            let starts = (left.startedAt ?? 0, right.startedAt ?? 0)
            if ranks.0 != ranks.1 { return ranks.0 < ranks.1 }
            if starts.0 != starts.1 { return starts.0 > starts.1 }
            return left.id.description < right.id.description
        }
    }

    package func streamSnapshot(_ id: StreamID) -> StreamSnapshot? {
        streams[id]?.snapshot
    }

    /// The stream's state now and after each change, newest last.
    ///
    /// A slow reader misses states in between, never the latest. A stream nobody has heard of is `waiting`.
    package func changes(of id: StreamID) -> AsyncStream<StreamSnapshot> {
        let number = nextWatcher
        nextWatcher += 1
        let (changes, continuation) = AsyncStream.makeStream(
            of: StreamSnapshot.self, bufferingPolicy: .bufferingNewest(1))
        continuation.yield(streams[id]?.snapshot ?? StreamRecord(id: id).snapshot)
        guard !isStopping else {
            continuation.finish()
            return changes
        }
        watchers[id, default: [:]][number] = continuation
        continuation.onTermination = { [weak self] _ in
            // The sequence is gone; forgetting it may take its time.
            guard let self else { return }
            Task { await self.removeWatcher(number, of: id) }
        }
        return changes
    }

    private func removeWatcher(_ number: UInt64, of id: StreamID) {
        watchers[id]?[number] = nil
        if watchers[id]?.isEmpty == true { watchers[id] = nil }
    }

    private func announce(_ id: StreamID) {
        guard let snapshot = streams[id]?.snapshot else { return }
        for watcher in (watchers[id] ?? [:]).values { watcher.yield(snapshot) }
    }

    // MARK: What workers tell

    func take(_ event: WorkerEvent) {
        switch event {
        case .connected(let id, let profile):
            guard let record = sessions[id] else { return }
            log.info("session.connected", ["session": id, "stream": record.stream, "srtp": "\(profile)"])
            if record.purpose == .stage { replaceEarlierSessions(than: record) }
            guard record.purpose == .play else { return }
            streams[record.stream]?.noteConnected(viewer: id)
            announce(record.stream)
        case .mediaStarted(let id):
            guard let record = sessions[id], record.request.isSource else { return }
            streams[record.stream]?.goLive(record, at: now)
            log.info("stream.live", ["stream": record.stream, "session": id])
            for viewer in streams[record.stream]?.audience ?? [] { sessions[viewer]?.waitsUntil = nil }
            announce(record.stream)
        case .closed(let id, let reason):
            forget(id, because: "\(reason)")
        case .published(let id, _), .sourceChanged(let id, _, _), .voice(let id, _), .controlOpened(let id):
            tellRoom(event, of: id)
        case .controlMessage(let id, let message): takeControl(message, from: id)
        }
    }

    /// Removes a session that has ended from its stream.
    func forget(_ id: SessionID, because reason: String) {
        guard let record = sessions.removeValue(forKey: id) else { return }
        if record.request.isOnStage { leaveRoom(record) }
        log.info("session.closed", ["session": id, "stream": record.stream, "reason": reason])
        guard streams[record.stream]?.remove(id, at: now) == true else { return }
        if streams[record.stream]?.snapshot.state == .ended, record.request.isSource {
            log.info("stream.ended", ["stream": record.stream, "reason": reason])
        }
        announce(record.stream)
    }

    // MARK: Time

    /// Ends viewers that waited long enough, and forgets streams that nobody needs; once a second.
    func keepHouse() {
        for record in sessions.values {
            guard let deadline = record.waitsUntil, now >= deadline else { continue }
            _ = endSession(record.id)
        }
        for (id, stream) in streams where stream.snapshot.state == .ended {
            guard let endedAt = stream.snapshot.endedAt else { continue }
            if now - endedAt >= configuration.returnTime.seconds {
                for viewer in stream.audience { _ = endSession(viewer) }
            }
            if stream.isUnused, now - endedAt >= Self.memory { streams[id] = nil }
        }
        for (id, stream) in streams where stream.snapshot.state == .waiting && stream.isUnused {
            streams[id] = nil
        }
        forgetOldStreams()
    }

    private func forgetOldStreams() {
        guard streams.count > Self.streamLimit else { return }
        let unused = streams.values.filter(\.isUnused)
            .sorted { ($0.snapshot.endedAt ?? 0) < ($1.snapshot.endedAt ?? 0) }
        for stream in unused.prefix(streams.count - Self.streamLimit) { streams[stream.snapshot.id] = nil }
    }
}
