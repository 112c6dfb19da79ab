import Base
import HLS
import Stage
import Transcoder

/// HLS of streams' programmes, for those who cannot watch by WebRTC.
extension Node {
    /// The playlist that names the others; the first request begins it.
    package func hlsMultivariantPlaylist(
        of stream: StreamID, _ names: HLSNames
    ) async throws(HLSRefusal) -> String {
        try await packaged(Packaging.Key(stream: stream, rendition: .source))
            .multivariantPlaylist(of: stream, names)
    }

    /// The playlist of a rendition's segments and parts; the first request begins it.
    /// - Parameters:
    ///   - uri: of the source's media playlist; the other renditions' have a query.
    ///   - reachesBack: whether it begins with what is on the disk.
    package func hlsMediaPlaylist(
        of stream: StreamID, uri: String, _ query: PlaylistQuery, reachesBack: Bool
    ) async throws(HLSRefusal) -> String {
        let key = Packaging.Key(stream: stream, rendition: PackagedRendition(query.rendition))
        return try await packaged(key).mediaPlaylist(of: key, uri: uri, query, reachesBack: reachesBack)
    }

    /// A part, segment or initialization segment; one that comes next is waited for.
    package nonisolated func hlsFile(
        named name: String, of stream: StreamID
    ) async throws(HLSRefusal) -> HLSFile {
        guard let packagings, packagings.makesHLS else { throw .unavailable }
        guard directory[stream]?.details.hls != .off else { throw .off }
        return try await packagings.file(named: name, of: stream)
    }

    /// Begins to package live streams that viewers can go back in, whether anybody asks or not, and has streams tell
    /// whether viewers can; once a second.
    func keepWindows() async {
        guard let packagings, packagings.longestWindow > 0, !isStopping else { return }
        for host in registry.all where dvrWindow(of: host.id) > 0 || directory[host.id]?.isKept == true {
            let key = Packaging.Key(stream: host.id, rendition: .source)
            let isWanted = dvrWindow(of: host.id) > 0
            if isWanted, directory[host.id]?.state == .live, await !packagings.isActive(key),
                await packagings.hasRoom
            {
                try? await packagings.begin(key, live.recordedProgramme(of: host.id))
                programmeChanged(in: host.id)
            }
            let isKept = await packagings.isKept(key)
            if directory[host.id]?.isKept != (isWanted && isKept) { await host.setKept(isWanted && isKept) }
        }
    }

    /// How many seconds viewers of a stream can go back, as its host wants it.
    nonisolated func dvrWindow(of stream: StreamID) -> Int {
        guard let details = directory[stream]?.details, details.hls != .off else { return 0 }
        return details.dvrSeconds
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
