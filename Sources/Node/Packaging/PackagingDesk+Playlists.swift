import Base
import HLS
import Transcoder

/// The playlists of a stream's renditions, as the desk composes them.
extension PackagingDesk {
    /// Returns the multivariant playlist, as soon as the codecs of the source are known.
    ///
    /// Once a stream has ended, the playlist lists only the window, if there is one.
    /// - Throws: `late` if the first part was not made in time.
    func multivariantPlaylist(
        of stream: StreamID, _ names: HLSNames
    ) async throws(HLSRefusal) -> String {
        let key = Packaging.Key(stream: stream, rendition: .source)
        let playlist = try await playlist(key, when: .beginning)
        if playlist.hasEnded, playlist.window > 0 {
            guard let recorded = playlist.variant(uri: names.window) else { throw .late }
            return MultivariantPlaylist([recorded]).text
        }
        guard let source = playlist.variant(uri: names.media) else { throw .late }
        return MultivariantPlaylist([source] + reduced(of: stream, besides: source)).text
    }

    /// Returns the multivariant playlist of a stream whose video is passed on in another codec than H.264.
    ///
    /// H.264 comes first, because many players start with the first variant. It is not encoded before a player
    /// requests it.
    /// - Returns: nil if the video is not passed on; the caller then serves `multivariantPlaylist`.
    func originalPlaylist(of stream: StreamID, _ names: HLSNames) async throws(HLSRefusal) -> String? {
        let key = Packaging.Key(stream: stream, rendition: .original)
        let made: LivePlaylist
        do throws(HLSRefusal) {
            made = try await playlist(key, when: .beginning)
        } catch {
            // Another request that waited for the same part may have found that the video is not passed on, and ended
            // this packaging.
            guard error == .unknownFile, !mayPassOriginal(of: stream) else { throw error }
            return nil
        }
        guard !made.hasEnded else { return nil }
        guard let original = made.variant(uri: key.rendition.uri(besides: names.media)) else { throw .late }
        // The packager fell back to H.264, which `source` offers already.
        guard !original.codecs.hasPrefix("avc1") else {
            refuseOriginal(key)
            return nil
        }
        // A source that is packaged already announces what it measured; otherwise what an encode would have.
        let own = active[Packaging.Key(stream: stream, rendition: .source)]?.playlist
        let expected = PackagedRendition.expectedSource(beside: original, uri: names.media)
        guard let source = own?.variant(uri: names.media) ?? expected else { return nil }
        return MultivariantPlaylist([source, original] + reduced(of: stream, besides: source)).text
    }

    /// The variants for slow links: as measured where they are packaged, as expected where not.
    private func reduced(
        of stream: StreamID, besides source: MultivariantPlaylist.Variant
    ) -> [MultivariantPlaylist.Variant] {
        PackagedRendition.allCases.filter(\.isReduced).compactMap { rendition in
            let uri = rendition.uri(besides: source.uri)
            return active[Packaging.Key(stream: stream, rendition: rendition)]?.playlist.variant(uri: uri)
                ?? rendition.expectedVariant(besides: source, uri: uri)
        }
    }

    /// Makes the playlist of a new packaging, with sequence numbers that match the stream's other renditions.
    ///
    /// `source` and `low`, which both have H.264, take over each other's last segments, so that a player that
    /// switches finds what it already has. Renditions in another codec only continue the numbering, as does a packaging
    /// that had ended because nobody asked for it.
    func makePlaylist(for key: Packaging.Key) -> LivePlaylist {
        let tag = Packaging.makeTag()
        // Renditions whose segments can be taken over.
        let same: [PackagedRendition] =
            switch key.rendition {
            case .source: [.low]
            case .low: [.source]
            case .original, .sound: []
            }
        // Renditions whose numbering can be continued.
        let others: [PackagedRendition] = key.rendition == .sound ? [] : [.source, .low, .original]
        func begun(_ renditions: [PackagedRendition]) -> LivePlaylist? {
            renditions.compactMap { active[Packaging.Key(stream: key.stream, rendition: $0)]?.playlist }
                .first { !$0.hasEnded && $0.hasCompleteSegment }
        }
        if let other = begun(same) { return LivePlaylist(tag: tag, continuing: other) }
        if let other = begun(others) { return LivePlaylist(tag: tag, countingOnFrom: other) }
        return earlier.playlist(tag: tag, after: key) ?? LivePlaylist(tag: tag, timing: timing.ofPlaylists)
    }

    /// The reports on the other renditions that a media playlist contains.
    /// - Parameter uri: of the source's media playlist.
    /// - Source: RFC 8216bis §4.4.5.4.
    func reports(beside key: Packaging.Key, _ uri: String) -> [LivePlaylist.Report] {
        PackagedRendition.allCases.filter { $0 != key.rendition }.compactMap { rendition in
            let other = Packaging.Key(stream: key.stream, rendition: rendition)
            guard isKept(other) else { return nil }
            return active[other]?.playlist.report(uri: rendition.uri(besides: uri))
        }
    }
}
