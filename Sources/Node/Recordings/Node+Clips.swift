import Base
import Recordings
import Stage

/// Clips of the last minutes of live streams.
extension Node {
    /// Updates the clip desk with a stream's programme, while clips of the stream are enabled.
    func followClips(of stream: StreamID) async {
        guard let clips, !isStopping else { return }
        guard let snapshot = directory[stream], snapshot.state == .live, snapshot.details.clips != .off else {
            return await clips.forget(stream)
        }
        await clips.update(stream, to: live.recordedProgramme(of: stream))
    }

    /// Makes a clip of the last seconds of a stream.
    /// - Parameters:
    ///   - seconds: within `ClipDesk.lengths`.
    ///   - title: nil for none.
    /// - Returns: the entry of the clip, whose file is not complete yet.
    /// - Throws: `unavailable`, `stopping`, `notLive`, `off`, or the desk's refusal.
    package func makeClip(
        of stream: StreamID, seconds: Int, title: String?
    ) async throws(ClipRefusal) -> RecordingEntry {
        guard let clips else { throw .unavailable }
        guard !isStopping else { throw .stopping }
        let snapshot = await streamSnapshot(stream)
        guard let snapshot, snapshot.state == .live else { throw .notLive }
        guard snapshot.details.clips != .off else { throw .off }
        // The clip keeps the tier of the gate, for when the stream is no longer known.
        return try await clips.make(
            of: stream, seconds: seconds, title: title, tier: snapshot.details.gate?.tier)
    }

    /// Reports a complete clip to webhooks.
    func tell(_ clip: RecordingEntry, of stream: StreamID) async {
        guard let host = await reportingHost(of: stream) else { return }
        await host.report(clip: json(clip))
    }
}
