import Base
import Forwarding
import Peer
import Stage
import Wire

/// Recordings: which streams are recorded, and who hears of it.
extension Node {
    func beginRecordings() async {
        await recordings?.start { [weak self] stream, isRecording, entry in
            await self?.tell(isRecording, entry, of: stream)
        }
    }

    /// Follows what viewers get of each stream.
    func advanceRecordings() async {
        guard let recordings else { return }
        let programmes = programmes
        await recordings.advance(with: programmes) { [directory] in directory[$0]?.state == .ended }
        for stream in programmes.keys {
            guard let snapshot = directory[stream], snapshot.state == .live,
                snapshot.details.recording == .automatic
            else { continue }
            await recordings.recordAutomatically(stream)
        }
    }

    /// Begins to record a stream, or says that it is being recorded.
    package func record(
        _ stream: StreamID
    ) async throws(RecordingRefusal) -> (entry: RecordingEntry, isNew: Bool) {
        guard let recordings, !isStopping else { throw .unavailable }
        guard await streamSnapshot(stream)?.state == .live else { throw .notLive }
        await advanceRecordings()
        return try await recordings.record(stream)
    }

    /// Ends a stream's recording.
    /// - Returns: it, complete.
    package func stopRecording(_ stream: StreamID) async throws(RecordingRefusal) -> RecordingEntry {
        guard let recordings else { throw .unavailable }
        guard let entry = await recordings.stop(stream, because: .stopped) else { throw .unknownRecording }
        return entry
    }

    package func recordings(of stream: StreamID) async -> [RecordingEntry] {
        await recordings?.recordings(of: stream) ?? []
    }

    package func removeRecording(_ id: String, of stream: StreamID) async throws(RecordingRefusal) {
        guard let recordings else { throw .unavailable }
        try await recordings.remove(id, of: stream)
    }

    package nonisolated func path(of recording: RecordingEntry) -> String? {
        recordings?.path(of: recording)
    }

    /// What viewers get of each stream: the composition or whoever speaks, where that is the programme, or its source.
    private var programmes: [StreamID: RecordingDesk.Programme] {
        var programmes: [StreamID: RecordingDesk.Programme] = [:]
        for (stream, record) in streams where record.isLive {
            programmes[stream] = RecordingDesk.Programme(
                video: recordedPicture(of: stream, record), audio: source(.audio, of: stream, record))
        }
        return programmes
    }

    /// The pause picture too, while viewers get it, where it fits into the file.
    private func recordedPicture(of stream: StreamID, _ record: StreamRecord) -> ProgrammeSource? {
        let own = source(.video, of: stream, record)
        guard let own, let track = pauses[stream]?.track, programmeTracks(of: stream).contains(track) else {
            return own
        }
        let formats =
            own.track?.plan.formats
            ?? own.session.flatMap { sessions[$0] }?.plan.sources.first { $0.mid == own.mid }?.formats
        // Another codec would begin another file: the last picture stays, then.
        guard formats?.first?.codec == track.plan.formats.first?.codec else { return own }
        return ProgrammeSource(session: nil, track: track, mid: track.plan.mid, worker: track.key.worker)
    }

    func source(_ kind: MediaKind, of stream: StreamID, _ record: StreamRecord) -> ProgrammeSource? {
        if let track = rooms[stream]?.programmeTrack(kind) {
            return ProgrammeSource(
                session: rooms[stream]?.programmeSession(kind), track: track, mid: track.plan.mid,
                worker: track.key.worker)
        }
        guard let session = record.publisher.flatMap({ sessions[$0] }),
            let source = session.plan.sources.first(where: { $0.kind == kind })
        else { return nil }
        return ProgrammeSource(session: session.id, mid: source.mid, worker: session.worker)
    }

    private func tell(_ isRecording: Bool, _ entry: RecordingEntry?, of stream: StreamID) async {
        guard let host = try? await knownHost(of: stream) else { return }
        await host.setRecording(isRecording)
        if let entry { await host.report(entry) }
    }
}
