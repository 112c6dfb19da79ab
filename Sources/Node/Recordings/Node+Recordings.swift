import Base
import Forwarding
import Peer
import Recordings
import Stage
import Wire

/// Which streams are recorded, and the notification of hosts and webhooks.
extension Node {
    /// Starts the desks for recordings and clips.
    func beginRecordings() async {
        await recordings?.start { [weak self] stream, isRecording, entry in
            await self?.tell(isRecording, entry, of: stream)
        }
        await clips?.start { [weak self] in await self?.tell($1, of: $0) }
    }

    /// Updates everything that takes a stream's programme, and starts an automatic recording.
    ///
    /// Called for each change by one task, separate from the pictures for viewers, because a desk may wait for the
    /// disk.
    func followRecording(of stream: StreamID) async {
        if let packagings { await packagings.update(stream, to: live.recordedProgramme(of: stream)) }
        await followRestreams(of: stream)
        await followClips(of: stream)
        guard let recordings, !isStopping else { return }
        await recordings.update(stream, to: live.recordedProgramme(of: stream))
        guard live[stream]?.isLive == true, let snapshot = directory[stream], snapshot.state == .live,
            snapshot.details.recording == .automatic
        else { return }
        await recordings.recordAutomatically(stream, tier: snapshot.details.gate?.tier)
    }

    /// Starts to record a stream, or returns the recording that is under way.
    /// - Throws: `unavailable`, `stopping`, `notLive`, or the desk's refusal.
    package func record(
        _ stream: StreamID
    ) async throws(RecordingRefusal) -> (entry: RecordingEntry, isNew: Bool) {
        guard let recordings else { throw .unavailable }
        guard !isStopping else { throw .stopping }
        let snapshot = await streamSnapshot(stream)
        guard snapshot?.state == .live else { throw .notLive }
        await recordings.update(stream, to: live.recordedProgramme(of: stream))
        // The programme may have changed during the awaits; this makes the desk use the latest one.
        defer { programmeChanged(in: stream) }
        return try await recordings.record(stream, tier: snapshot?.details.gate?.tier)
    }

    /// Stops a stream's recording.
    /// - Returns: the complete entry.
    package func stopRecording(_ stream: StreamID) async throws(RecordingRefusal) -> RecordingEntry {
        guard let recordings else { throw .unavailable }
        guard let entry = await recordings.stop(stream, because: .stopped) else { throw .unknownRecording }
        return entry
    }

    /// The stream's recordings that are kept, complete or under way.
    package func recordings(of stream: StreamID) async -> [RecordingEntry] {
        await recordings?.recordings(of: stream) ?? []
    }

    /// Returns the comments written during a recording, by its time line; empty for a stream that is no longer known.
    package func comments(
        on recording: RecordingEntry, after number: Int, limit: Int
    ) async throws(StageRefusal) -> JSON {
        guard let stream = StreamID(recording.stream), let host = try await knownHost(of: stream) else {
            return .object(["comments": .array([]), "more": .bool(false)])
        }
        return try await host.comments(on: recording, after: number, limit: limit)
    }

    /// Deletes a complete recording.
    package func removeRecording(_ id: String, of stream: StreamID) async throws(RecordingRefusal) {
        guard let recordings else { throw .unavailable }
        try await recordings.remove(id, of: stream)
    }

    /// The path of a recording's file for a reader; nil if there is no file.
    package nonisolated func readingPath(of recording: RecordingEntry) -> String? {
        recordings?.readingPath(of: recording)
    }

    /// The index by which a recording is played over HLS.
    package nonisolated func fragments(
        of recording: RecordingEntry
    ) async throws(RecordingRefusal) -> FragmentIndex {
        guard let recordings else { throw .unavailable }
        return try await recordings.fragments(of: recording)
    }

    /// The recording as the API shows it.
    ///
    /// The URLs come from the gateway: the node knows none.
    nonisolated func json(_ entry: RecordingEntry) -> JSON {
        let locator = configuration.locator
        return entry.json(url: locator?.recording(entry), hls: locator?.playlist(of: entry))
    }

    /// The host to tell of a stream's files; nil for a stream that is gone.
    ///
    /// If the store can't be read now, that is one that has closed, which hands over what it is told to the next one.
    func reportingHost(of stream: StreamID) async -> StreamHost? {
        do throws(StageRefusal) {
            return try await knownHost(of: stream)
        } catch {
            return registry[stream]
        }
    }

    /// Announces whether a stream is recorded, and reports a complete file to webhooks.
    private func tell(_ isRecording: Bool, _ entry: RecordingEntry?, of stream: StreamID) async {
        guard let host = await reportingHost(of: stream) else { return }
        await host.setRecording(isRecording)
        if let entry {
            await host.report(recording: json(entry))
        }
    }
}
