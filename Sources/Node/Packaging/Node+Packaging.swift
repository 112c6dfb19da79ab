import Base
import HLS
import Stage
import Transcoder

/// HLS of streams' programmes, for those who cannot watch by WebRTC.
extension Node {
    /// The playlist that names the others; the first request begins it.
    /// - Parameter uri: of the source's media playlist; the other renditions' have a query.
    package func hlsMultivariantPlaylist(
        of stream: StreamID, uri: String
    ) async throws(HLSRefusal) -> String {
        try await packaged(Packaging.Key(stream: stream, rendition: .source))
            .multivariantPlaylist(of: stream, uri: uri)
    }

    /// The playlist of a rendition's segments and parts; the first request begins it.
    /// - Parameter uri: as for the playlist that names the others.
    package func hlsMediaPlaylist(
        of stream: StreamID, uri: String, _ query: PlaylistQuery
    ) async throws(HLSRefusal) -> String {
        let key = Packaging.Key(stream: stream, rendition: PackagedRendition(query.rendition))
        return try await packaged(key).mediaPlaylist(of: key, uri: uri, query)
    }

    /// A part, segment or initialization segment; one that comes next is waited for.
    package nonisolated func hlsFile(
        named name: String, of stream: StreamID
    ) async throws(HLSRefusal) -> [UInt8] {
        guard let packagings, packagings.makesHLS else { throw .unavailable }
        guard directory[stream]?.details.hls != .off else { throw .off }
        return try await packagings.file(named: name, of: stream)
    }

    /// The desk, with the rendition under way.
    private func packaged(_ key: Packaging.Key) async throws(HLSRefusal) -> PackagingDesk {
        let stream = key.stream
        guard let packagings, packagings.makesHLS, !isStopping else { throw .unavailable }
        guard directory[stream]?.details.hls != .off else { throw .off }
        if await packagings.isActive(key) { return packagings }
        guard await streamSnapshot(stream)?.state == .live else {
            guard await packagings.isKept(key) else { throw .notLive }
            return packagings
        }
        // A live stream whose host is about to come, or to come back, has none: whoever asks waits for it.
        try await packagings.begin(key, live.recordedProgramme(of: stream))
        // Whatever else was said of it meanwhile, the latest is what counts.
        programmeChanged(in: stream)
        return packagings
    }
}
