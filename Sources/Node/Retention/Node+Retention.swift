import Base
import Recordings
import Stage
import Store

/// Deletes what was kept for long enough, a little at a time.
extension Node {
    /// What was deleted because it was old enough, since the start.
    package var retentionCounts: RetentionCounts { retention.counts }

    /// In one turn, so that commits and recordings need not wait for long.
    private static let streamsAtOnce = 100
    private static let recordingsAtOnce = 20
    private static let commentedAtOnce = 50

    /// Why something could not be deleted now; all of it is tried again.
    private struct RetentionFailure: Error {
        let reason: String
    }

    /// Does what is due; called every second.
    func deleteExpired() async {
        let moment = now()
        guard deletesWhatExpires, moment.elapsed >= retention.due, !isStopping
        else { return }
        var isMore = false
        var failures: [String] = []
        // What fails of one kind is no reason to keep another.
        let (kept, wall) = (configuration.retention, moment.wall)
        do throws(RetentionFailure) {
            if try await deleteExpired(.recording, after: kept.recordings, at: wall) { isMore = true }
        } catch {
            failures.append(error.reason)
        }
        do throws(RetentionFailure) {
            if try await deleteExpired(.clip, after: kept.clips, at: wall) { isMore = true }
        } catch {
            failures.append(error.reason)
        }
        do throws(RetentionFailure) {
            if try await deleteExpiredComments(at: moment.wall) { isMore = true }
        } catch {
            failures.append(error.reason)
        }
        // Last: a stream that has recordings stays.
        do throws(RetentionFailure) {
            if try await deleteExpiredStreams(at: moment.wall) { isMore = true }
        } catch {
            failures.append(error.reason)
        }
        let next = now().elapsed + (isMore ? .seconds(1) : configuration.retention.interval)
        if let reason = retention.endTurn(failures: failures, next: next) {
            log.error("expiry.failed", ["reason": reason])
        }
    }

    // MARK: Recordings and clips

    /// - Returns: whether there are more.
    private func deleteExpired(
        _ kind: RecordingEntry.Kind, after seconds: Int?, at time: WallTime
    ) async throws(RetentionFailure) -> Bool {
        guard let recordings, let seconds else { return false }
        let expiry = await recordings.expire(
            kind, endedBefore: time.advanced(bySeconds: -seconds), limit: Self.recordingsAtOnce)
        retention.note(expiry, of: kind)
        if let reason = expiry.failure { throw RetentionFailure(reason: reason) }
        return expiry.isMore
    }

    // MARK: Streams

    private func deleteExpiredStreams(at time: WallTime) async throws(RetentionFailure) -> Bool {
        guard let seconds = configuration.retention.streams else { return false }
        let limit = time.advanced(bySeconds: -seconds).milliseconds
        do {
            let part = try await registry.store.ended(
                before: limit, after: retention.lastStream, limit: Self.streamsAtOnce)
            retention.lastStream = part.count == Self.streamsAtOnce ? part.last : nil
            var expired: [StreamID] = []
            for listing in part where await recordings?.recordings(of: listing.stream).isEmpty ?? true {
                expired.append(listing.stream)
            }
            guard !expired.isEmpty else { return retention.lastStream != nil }
            for stream in try await registry.store.forget(expired, endedBefore: limit) {
                await drop(stream)
                retention.noteStream()
                log.info("stream.expired", ["stream": stream])
            }
        } catch {
            throw RetentionFailure(reason: "\(error)")
        }
        return retention.lastStream != nil
    }

    /// The store has forgotten a stream that had ended; it may have begun anew since.
    private func drop(_ stream: StreamID) async {
        if let host = registry[stream], await host.committed?.phase == .ended {
            await host.close(.goingAway)
            registry.remove(host, because: .unmade)
        }
        if directory[stream]?.state == .ended { directory.remove(stream) }
    }

    // MARK: Comments

    private func deleteExpiredComments(at time: WallTime) async throws(RetentionFailure) -> Bool {
        guard let seconds = configuration.retention.comments else { return false }
        let limit = time.advanced(bySeconds: -seconds)
        var room = Self.commentedAtOnce
        do {
            for host in registry.all where room > 0 && !host.isClosed {
                guard try await deleteComments(in: host, before: limit) > 0 else { continue }
                room -= 1
            }
            guard room > 0 else { return true }
            let part = try await registry.store.ended(
                before: limit.milliseconds, after: retention.lastCommented, limit: room)
            for listing in part {
                if let host = try await endedHost(of: listing.stream) {
                    _ = try await deleteComments(in: host, before: limit)
                }
                retention.lastCommented = listing
            }
            return part.count == room
        } catch {
            throw RetentionFailure(reason: "\(error)")
        }
    }

    /// Nil for a stream that is gone, or that nobody can read: that must not keep others' comments.
    private func endedHost(of stream: StreamID) async throws(StageRefusal) -> StreamHost? {
        do throws(StageRefusal) {
            return try await knownHost(of: stream)
        } catch .storage(let reason) {
            retention.noteFailures(1)
            log.error("stream.unreadable", ["stream": stream, "error": reason])
            return nil
        }
    }

    private func deleteComments(in host: StreamHost, before time: WallTime) async throws(StageRefusal) -> Int
    {
        let count = try await host.forgetComments(before: time)
        guard count > 0 else { return 0 }
        retention.noteComments(count)
        log.info("comments.expired", ["stream": host.id, "comments": count])
        return count
    }
}
