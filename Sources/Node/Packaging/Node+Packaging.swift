import Base
import Forwarding
import HLS
import Recordings
import Stage
import Transcoder
import Wire

/// HLS of streams' programmes, for viewers who cannot watch by WebRTC.
///
/// These functions check the stream's settings and state; `PackagingDesk` does the rest.
extension Node {
    /// Returns the multivariant playlist, and starts packaging if this is the first request for it.
    ///
    /// What starts needs no encode where the publisher's video can be passed on.
    /// - Parameter listsAll: also list the publisher's own video if it is not H.264. Players that switch renditions
    ///   by bitrate alone, as GStreamer's does, break where a rendition has another codec.
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

    /// The codec in which the publisher sends a live stream's video; nil while there is no video.
    ///
    /// `desks.originals` comes first: where an encoder's video is re-encoded for viewers by WebRTC, their track has
    /// another codec.
    private func originalCodec(of stream: StreamID) -> VideoCodec? {
        let session = live.recordedProgramme(of: stream)?.video?.session
        return session.flatMap { desks.originals[$0] }?.codec ?? live.pictureCodec(of: stream)
    }

    /// Returns the media playlist of a rendition, and starts packaging it if this is the first request for it.
    /// - Parameters:
    ///   - uri: of the source's media playlist; other renditions have the same URI with a query.
    ///   - reachesBack: whether the playlist begins with the segments on disk.
    package func hlsMediaPlaylist(
        of stream: StreamID, uri: String, _ query: PlaylistQuery, reachesBack: Bool
    ) async throws(HLSRefusal) -> String {
        let key = Packaging.Key(stream: stream, rendition: PackagedRendition(query.rendition))
        return try await packaged(key).mediaPlaylist(of: key, uri: uri, query, reachesBack: reachesBack)
    }

    /// Returns a part, segment or initialization segment, and waits for one that is made next.
    package nonisolated func hlsFile(
        named name: String, of stream: StreamID
    ) async throws(HLSRefusal) -> HLSFile {
        guard let packagings, packagings.makesHLS else { throw .unavailable }
        guard directory[stream]?.details.hls != .off else { throw .off }
        return try await packagings.file(named: name, of: stream)
    }

    /// Returns the same file without waiting if it is in memory and the stream has no gate; nil otherwise.
    ///
    /// Runs on the thread that read the request. Nil is not a refusal: the request then goes through `hlsFile`, which
    /// waits for the file, finds it on disk, or throws the reason.
    package nonisolated func hlsFileAtHand(named name: String, of stream: StreamID) -> [UInt8]? {
        guard let snapshot = directory[stream], snapshot.state != .ended, snapshot.details.gate == nil,
            snapshot.details.hls != .off
        else { return nil }
        return packagings?.atHand.file(named: name, of: stream)
    }

    /// Packages every live stream that has a window, requested or not, and publishes which streams can be rewound.
    ///
    /// Runs once a second. Segments must be written from the beginning of the stream, before the first viewer asks.
    func keepWindows() async {
        guard let packagings, packagings.longestWindow > 0, !isStopping else { return }
        for host in registry.all where dvrWindow(of: host.id) > 0 || directory[host.id]?.isKept == true {
            // Only segments of the source are written to disk.
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

    /// How many seconds viewers may go back, by the host's settings; 0 while HLS is off.
    ///
    /// The server's own limit is not applied here: see `PackagingDesk.longestWindow`.
    nonisolated func dvrWindow(of stream: StreamID) -> Int {
        guard let details = directory[stream]?.details, details.hls != .off else { return 0 }
        return details.dvrSeconds
    }

    /// Returns the desk, after making sure that it packages the rendition.
    ///
    /// A stream that has ended is served for as long as the desk keeps it, but not packaged again.
    private func packaged(_ key: Packaging.Key) async throws(HLSRefusal) -> PackagingDesk {
        let stream = key.stream
        guard let packagings, packagings.makesHLS else { throw .unavailable }
        guard directory[stream]?.details.hls != .off else { throw .off }
        guard !isStopping else { throw .stopping }
        if await packagings.isActive(key) { return packagings }
        guard await streamSnapshot(stream)?.state == .live else {
            guard await packagings.isKept(key) else { throw isStopping ? .stopping : .notLive }
            return packagings
        }
        // The programme is nil while a live stream waits for its host to come or come back. Requests then wait for
        // the first part.
        try await packagings.begin(key, live.recordedProgramme(of: stream))
        // The programme may have changed during the await; this makes the desk use the latest one.
        programmeChanged(in: stream)
        return packagings
    }
}
