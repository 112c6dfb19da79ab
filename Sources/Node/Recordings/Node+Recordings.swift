import Base
import Forwarding
import Peer
import Recordings
import Stage
import Wire

/// Recordings: which streams are recorded, and who hears of it.
extension Node {
    func beginRecordings() async {
        await recordings?.start { [weak self] stream, isRecording, entry in
            await self?.tell(isRecording, entry, of: stream)
        }
        await clips?.start { [weak self] in await self?.tell($1, of: $0) }
    }

    /// Tells the desk what viewers get of a stream now, and begins to record it where that is its setting.
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

    /// Begins to record a stream, or says that it is being recorded.
    package func record(
        _ stream: StreamID
    ) async throws(RecordingRefusal) -> (entry: RecordingEntry, isNew: Bool) {
        guard let recordings, !isStopping else { throw .unavailable }
        let snapshot = await streamSnapshot(stream)
        guard snapshot?.state == .live else { throw .notLive }
        await recordings.update(stream, to: live.recordedProgramme(of: stream))
        // Whatever else was said of it meanwhile, the latest is what counts.
        defer { programmeChanged(in: stream) }
        return try await recordings.record(stream, tier: snapshot?.details.gate?.tier)
    }

    /// Ends a stream's recording.
    /// - Returns: it, complete.
    package func stopRecording(_ stream: StreamID) async throws(RecordingRefusal) -> RecordingEntry {
        guard let recordings else { throw .unavailable }
        guard let entry = await recordings.stop(stream, because: .stopped) else { throw .unknownRecording }
        return entry
    }

    /// Those that are kept, under way or complete.
    package func recordings(of stream: StreamID) async -> [RecordingEntry] {
        await recordings?.recordings(of: stream) ?? []
    }

    /// What was written while a recording was made, by its time; nothing where the stream is not known any more.
    package func comments(
        on recording: RecordingEntry, after number: Int, limit: Int
    ) async throws(StageRefusal) -> JSON {
        guard let stream = StreamID(recording.stream), let host = try await knownHost(of: stream) else {
            return .object(["comments": .array([]), "more": .bool(false)])
        }
        return try await host.comments(on: recording, after: number, limit: limit)
    }

    /// Deletes a recording that is complete.
    package func removeRecording(_ id: String, of stream: StreamID) async throws(RecordingRefusal) {
        guard let recordings else { throw .unavailable }
        try await recordings.remove(id, of: stream)
    }

    /// Where its file lies on the disk, for somebody who reads it now; nil where there is none.
    package nonisolated func readingPath(of recording: RecordingEntry) -> String? {
        recordings?.readingPath(of: recording)
    }

    /// How it is played in fragments.
    package nonisolated func fragments(
        of recording: RecordingEntry
    ) async throws(RecordingRefusal) -> FragmentIndex {
        guard let recordings else { throw .unavailable }
        return try await recordings.fragments(of: recording)
    }

    nonisolated func json(_ entry: RecordingEntry) -> JSON {
        let locator = configuration.locator
        return entry.json(url: locator?.recording(entry), hls: locator?.playlist(of: entry))
    }

    private func tell(_ isRecording: Bool, _ entry: RecordingEntry?, of stream: StreamID) async {
        guard let host = try? await knownHost(of: stream) else { return }
        await host.setRecording(isRecording)
        if let entry {
            await host.report(recording: json(entry))
        }
    }
}
