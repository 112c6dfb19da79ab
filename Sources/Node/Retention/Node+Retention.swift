import Base
import Recordings
import Stage
import Store

/// Deletes what has been kept for long enough, a little at a time.
extension Node {
    /// What was deleted because of its age, since the start.
    package var retentionCounts: RetentionCounts { retention.counts }

    /// Limits for one turn, so that commits and recordings do not wait for long.
    private static let streamsAtOnce = 100
    private static let recordingsAtOnce = 20
    /// Streams whose comments are deleted in one turn.
    private static let commentedAtOnce = 50

    /// Why something could not be deleted in this turn; the next turn tries again.
    private struct RetentionFailure: Error {
        let reason: String
    }

    /// Runs a turn if one is due; called every second.
    func deleteExpired() async {
        let moment = now()
        guard deletesWhatExpires, moment.elapsed >= retention.due, !isStopping
        else { return }
        var isMore = false
        var failures: [String] = []
        // A failure with one kind must not stop the deletion of the others.
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
        // Last, because a stream that has recordings stays.
        do throws(RetentionFailure) {
            if try await deleteExpiredStreams(at: moment.wall) { isMore = true }
        } catch {
            failures.append(error.reason)
        }
        // While more is left, a turn runs every second.
        let next = now().elapsed + (isMore ? .seconds(1) : configuration.retention.interval)
        if let reason = retention.endTurn(failures: failures, next: next) {
            log.error("expiry.failed", ["reason": reason])
        }
    }

    // MARK: Recordings and clips

    /// Deletes recordings or clips.
    /// - Parameter seconds: their age, in seconds after their end; nil to keep them.
    /// - Returns: whether more are left.
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

    /// Deletes ended streams without recordings, each in one transaction of the store.
    ///
    /// Continues after the stream at which the last turn stopped, and starts over after the last stream.
    /// - Returns: whether more are left.
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
            // The store checks the end again, because the stream may have begun again since it was listed.
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

    /// Removes a forgotten stream from memory, unless it has begun again.
    ///
    /// Viewers who wait for the next stream of that name go on waiting, now for a name that is not in use.
    private func drop(_ stream: StreamID) async {
        if let host = registry[stream], await host.committed?.phase == .ended {
            await host.close(.goingAway)
            if live[stream] == nil {
                registry.remove(host, because: .unmade)
            } else {
                // Closed as it is, it remains if there is no room: the next host takes the viewers over from it.
                _ = try? await make(stream)
            }
        }
        if directory[stream]?.state == .ended { directory.remove(stream) }
    }

    // MARK: Comments

    /// Deletes old comments of streams in memory, then of ended streams in the store.
    /// - Returns: whether more are left.
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

    /// Loads an ended stream.
    /// - Returns: nil if the stream is gone or unreadable. An unreadable stream must not stop the deletion of others'
    ///   comments.
    private func endedHost(of stream: StreamID) async throws(StageRefusal) -> StreamHost? {
        do throws(StageRefusal) {
            return try await knownHost(of: stream)
        } catch .storage(let reason) {
            retention.noteFailures(1)
            log.error("stream.unreadable", ["stream": stream, "error": reason])
            return nil
        }
    }

    /// Deletes old comments of one stream.
    /// - Returns: how many were deleted.
    private func deleteComments(in host: StreamHost, before time: WallTime) async throws(StageRefusal) -> Int
    {
        let count = try await host.forgetComments(before: time)
        guard count > 0 else { return 0 }
        retention.noteComments(count)
        log.info("comments.expired", ["stream": host.id, "comments": count])
        return count
    }
}
