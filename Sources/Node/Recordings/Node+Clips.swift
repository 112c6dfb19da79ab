import Base
import Recordings
import Stage

/// Clips of the last minutes of live streams.
extension Node {
    /// Tells the desk what viewers get of a stream now, as long as clips may be made of it.
    func followClips(of stream: StreamID) async {
        guard let clips, !isStopping else { return }
        guard let snapshot = directory[stream], snapshot.state == .live, snapshot.details.clips != .off else {
            return await clips.forget(stream)
        }
        await clips.update(stream, to: live.recordedProgramme(of: stream))
    }

    /// Has a clip made of the last seconds of a stream.
    /// - Parameters:
    ///   - seconds: within `ClipDesk.lengths`.
    ///   - title: nil for none.
    /// - Returns: it, before it is complete.
    package func makeClip(
        of stream: StreamID, seconds: Int, title: String?
    ) async throws(ClipRefusal) -> RecordingEntry {
        guard let clips, !isStopping else { throw .unavailable }
        let snapshot = await streamSnapshot(stream)
        guard let snapshot, snapshot.state == .live else { throw .notLive }
        guard snapshot.details.clips != .off else { throw .off }
        return try await clips.make(
            of: stream, seconds: seconds, title: title, tier: snapshot.details.gate?.tier)
    }

    func tell(_ clip: RecordingEntry, of stream: StreamID) async {
        guard let host = try? await knownHost(of: stream) else { return }
        await host.report(clip: json(clip))
    }
}
