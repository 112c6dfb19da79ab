import Base
import Forwarding
import HLS
import Recordings
import Stage
import Transcoder
import Wire

/// HLS of streams' programmes, for those who cannot watch by WebRTC.
extension Node {
    /// The playlist that names the others; the first request begins it, with what costs no encode where that can be.
    ///
    /// - Parameter listsAll: also the publisher's own pictures where they are no H.264. Players that change between
    ///   renditions by their bits alone, as GStreamer's does, break where one has another codec.
    package func hlsMultivariantPlaylist(
        of stream: StreamID, _ names: HLSNames, listsAll: Bool
    ) async throws(HLSRefusal) -> String {
        if listsAll, let codec = originalCodec(of: stream), codec != .h264,
            PackagedRendition.original.passable.contains(codec),
            await packagings?.mayPassOriginal(of: stream) == true
        {
            let desk = try await packaged(Packaging.Key(stream: stream, rendition: .original))
            if let playlist = try await desk.originalPlaylist(of: stream, names) { return playlist }
        }
        return try await packaged(Packaging.Key(stream: stream, rendition: .source))
            .multivariantPlaylist(of: stream, names)
    }

    /// How a live stream's picture was encoded by whoever sends it; nil while there is none.
    private func originalCodec(of stream: StreamID) -> VideoCodec? {
        let session = live.recordedProgramme(of: stream)?.video?.session
        return session.flatMap { desks.originals[$0] }?.codec ?? live.pictureCodec(of: stream)
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

    /// The same at once, of a live stream without a gate, where it lies in memory; nil for any other.
    package nonisolated func hlsFileAtHand(named name: String, of stream: StreamID) -> [UInt8]? {
        guard let snapshot = directory[stream], snapshot.state != .ended, snapshot.details.gate == nil,
            snapshot.details.hls != .off
        else { return nil }
        return packagings?.atHand.file(named: name, of: stream)
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
