import Base
import HLS
import Stage

/// HLS of streams' programmes, for those who cannot watch by WebRTC.
extension Node {
    /// The playlist that names the others; the first request begins it.
    /// - Parameter uri: of the media playlist.
    package func hlsMultivariantPlaylist(
        of stream: StreamID, uri: String
    ) async throws(HLSRefusal) -> String {
        try await packaged(stream).multivariantPlaylist(of: stream, uri: uri)
    }

    /// The playlist of segments and parts; the first request begins it.
    package func hlsMediaPlaylist(
        of stream: StreamID, _ query: PlaylistQuery
    ) async throws(HLSRefusal) -> String {
        try await packaged(stream).mediaPlaylist(of: stream, query)
    }

    /// A part, segment or initialization segment; one that comes next is waited for.
    package nonisolated func hlsFile(
        named name: String, of stream: StreamID
    ) async throws(HLSRefusal) -> [UInt8] {
        guard let packagings, packagings.makesHLS else { throw .unavailable }
        guard directory[stream]?.details.hls != .off else { throw .off }
        return try await packagings.file(named: name, of: stream)
    }

    /// The desk, with the stream under way.
    private func packaged(_ stream: StreamID) async throws(HLSRefusal) -> PackagingDesk {
        guard let packagings, packagings.makesHLS, !isStopping else { throw .unavailable }
        guard directory[stream]?.details.hls != .off else { throw .off }
        if await packagings.isActive(stream) { return packagings }
        guard await streamSnapshot(stream)?.state == .live else {
            guard await packagings.isKept(stream) else { throw .notLive }
            return packagings
        }
        // A live stream whose host is about to come, or to come back, has none: whoever asks waits for it.
        try await packagings.begin(stream, live.recordedProgramme(of: stream))
        // Whatever else was said of it meanwhile, the latest is what counts.
        programmeChanged(in: stream)
        return packagings
    }
}
