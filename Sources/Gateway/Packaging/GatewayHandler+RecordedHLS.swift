import Base
import HLS
import HTTP
import Node
import Recordings
import Stage

/// Recordings by HLS: playlists of fragmented MP4 files, with segments as byte ranges.
///
/// Needs no encoding, and works even if HLS of live streams is off. The permission is the same as for the file; a
/// gate gives no free seconds.
/// - Source: RFC 8216bis §6.2.1 (playlists that have ended); RFC 8216 §4.3.2.2 (byte ranges).
extension GatewayHandler {
    /// `GET /hls/{stream}/recordings/{recordedFile}`: the playlist `ID.m3u8`, or `ID.mp4`, whose ranges it names.
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

    /// The playlist of all playable parts of the latest recording of a stream that has ended.
    /// - Returns: nil if there are none, or if the stream has not ended.
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
        // All parts of one recording have the same base.
        for entry in entries where entry.base == latest.base {
            do throws(RecordingRefusal) {
                parts.append((entry, try await service.fragments(of: entry)))
            } catch .notFragmented {
                // A file that was broken off before its first frame.
                continue
            }
        }
        guard !parts.isEmpty else { return nil }
        return Self.playlist(Self.playlist(parts, in: "recordings/"), for: audience, lifetime: Self.lifetime)
    }

    /// Lifetime of a playlist in caches, in seconds; short, because its recording may be deleted.
    private static let lifetime = 60

    /// The text of a playlist with one part per file.
    /// - Parameter folder: folder of the files, relative to the playlist; empty or ending in a slash.
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

    /// Checks the stream's settings and gate as for a live stream and decides about caching; if the stream is not
    /// known any more, the gate that the recording began with applies.
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
