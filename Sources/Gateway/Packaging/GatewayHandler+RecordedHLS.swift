import Base
import HLS
import HTTP
import Node
import Recordings
import Stage

/// Recordings by HLS: playlists of fragmented MP4 files, and the bytes that they name.
///
/// Costs no encode, and is there without HLS of what is live, too. Who may watch is who may have the file; behind a
/// gate nothing is free.
/// - Source: RFC 8216bis §6.2.1 (what a playlist that has ended says).
extension GatewayHandler {
    /// `GET /hls/{stream}/recordings/{recordedFile}`: `ID.m3u8`, or `ID.mp4`, of which the playlist names ranges.
    func showRecordedHLS(_ call: Call) async throws -> HTTPResponse {
        let (stream, sender) = try await hlsViewer(call)
        let name = call.parameters["recordedFile"] ?? ""
        let fields = name.split(separator: ".", omittingEmptySubsequences: false)
        let entries = await service.recordings(of: stream)
        guard fields.count == 2, fields[1] == "m3u8" || fields[1] == "mp4",
            let entry = entries.first(where: { $0.id == fields[0] })
        else { throw RecordingRefusal.unknownRecording }
        let audience = try await audience(of: entry, in: stream, call, sender)
        let fragments = try await service.fragments(of: entry)
        guard fields[1] == "mp4" else {
            return Self.playlist(
                Self.playlist([(entry, fragments)], in: ""), for: audience, lifetime: Self.lifetime)
        }
        guard let path = service.readingPath(of: entry),
            let part = RecordingPart(
                path, entry, call.request, fragments: fragments,
                lifetime: "\(audience.rawValue), max-age=3600")
        else { throw RecordingRefusal.unknownRecording }
        return part.response
    }

    /// What a stream that has ended is known by: all parts of its latest recording that HLS can play.
    /// - Returns: nil if there are none, or if the stream may go on.
    func latestRecording(_ call: Call, of stream: StreamID) async throws -> HTTPResponse? {
        let state = await service.streamSnapshot(stream)?.state
        guard state == nil || state == .ended else { return nil }
        let entries = await service.recordings(of: stream).filter {
            $0.kind == .recording && settings.paths.playlist(of: $0) != nil
        }
        guard let latest = entries.max(by: { ($0.startedAt, $0.part) < ($1.startedAt, $1.part) }) else {
            return nil
        }
        let (_, sender) = try await hlsViewer(call)
        let audience = try await audience(of: latest, in: stream, call, sender)
        var parts: [(RecordingEntry, FragmentIndex)] = []
        for entry in entries where entry.base == latest.base {
            do throws(RecordingRefusal) {
                parts.append((entry, try await service.fragments(of: entry)))
            } catch .notFragmented {
                // A file that was cut off before the first frame.
                continue
            }
        }
        guard !parts.isEmpty else { return nil }
        return Self.playlist(Self.playlist(parts, in: "recordings/"), for: audience, lifetime: Self.lifetime)
    }

    /// How long caches keep a playlist, in seconds: its recording may be deleted.
    private static let lifetime = 60

    /// - Parameter folder: of the files, relative to the playlist.
    private static func playlist(_ parts: [(RecordingEntry, FragmentIndex)], in folder: String) -> String {
        let playlist = RecordedPlaylist(
            parts.map { entry, index in
                RecordedPlaylist.Part(
                    uri: "\(folder)\(entry.id).mp4", initialization: index.initialization,
                    segments: index.segments.map {
                        RecordedPlaylist.Segment(bytes: $0.bytes, milliseconds: $0.milliseconds)
                    }, date: entry.time.lowerBound)
            }, isIndependent: parts.allSatisfy { $0.1.segments.allSatisfy(\.isIndependent) })
        return playlist.text
    }

    /// Refuses who may not see it, as of what is live, or, where nothing is known of its stream any more, as it was
    /// when it began.
    private func audience(
        of entry: RecordingEntry, in stream: StreamID, _ call: Call, _ sender: Stage.Sender?
    ) async throws -> Audience {
        guard let details = await service.streamSnapshot(stream)?.details else {
            try await requireOpenGate(of: entry, in: stream, before: sender)
            return call.parameters["token"] != nil || sender == nil ? .everybody : .asker
        }
        guard details.hls != .off else { throw HLSRefusal.off }
        return try await audience(of: stream, call, sender)
    }
}
