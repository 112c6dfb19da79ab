import Base
import HLS
import Transcoder

/// What the playlists of a stream say of its renditions.
extension PackagingDesk {
    /// The playlist that names the others.
    ///
    /// Of a stream that has ended it names what viewers can go back to, if they can.
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

    /// The playlist that names the others where pictures go on as they are, in another codec than H.264.
    ///
    /// What every player takes comes first, as many begin with that, and is not made before somebody asks for it.
    /// - Returns: nil where they do not go on so: all is made anew then.
    func originalPlaylist(of stream: StreamID, _ names: HLSNames) async throws(HLSRefusal) -> String? {
        let key = Packaging.Key(stream: stream, rendition: .original)
        let made: LivePlaylist
        do throws(HLSRefusal) {
            made = try await playlist(key, when: .beginning)
        } catch {
            // Somebody who waited for it, too, found out.
            guard error == .unknownFile, !mayPassOriginal(of: stream) else { throw error }
            return nil
        }
        guard !made.hasEnded else { return nil }
        guard let original = made.variant(uri: key.rendition.uri(besides: names.media)) else { throw .late }
        guard !original.codecs.hasPrefix("avc1") else {
            refuseOriginal(key)
            return nil
        }
        let own = active[Packaging.Key(stream: stream, rendition: .source)]?.playlist
        let expected = PackagedRendition.expectedSource(beside: original, uri: names.media)
        guard let source = own?.variant(uri: names.media) ?? expected else { return nil }
        return MultivariantPlaylist([source, original] + reduced(of: stream, besides: source)).text
    }

    /// What there is, or will be once somebody asks for it, for links that do not carry the source.
    private func reduced(
        of stream: StreamID, besides source: MultivariantPlaylist.Variant
    ) -> [MultivariantPlaylist.Variant] {
        PackagedRendition.allCases.filter(\.isReduced).compactMap { rendition in
            let uri = rendition.uri(besides: source.uri)
            return active[Packaging.Key(stream: stream, rendition: rendition)]?.playlist.variant(uri: uri)
                ?? rendition.expectedVariant(besides: source, uri: uri)
        }
    }

    /// One that goes on where another rendition with pictures is, if there is any: of H.264, with those of H.264.
    func makePlaylist(for key: Packaging.Key) -> LivePlaylist {
        let tag = Packaging.makeTag()
        let same: [PackagedRendition] =
            switch key.rendition {
            case .source: [.low]
            case .low: [.source]
            case .original, .sound: []
            }
        let others: [PackagedRendition] = key.rendition == .sound ? [] : [.source, .low, .original]
        func begun(_ renditions: [PackagedRendition]) -> LivePlaylist? {
            renditions.compactMap { active[Packaging.Key(stream: key.stream, rendition: $0)]?.playlist }
                .first { !$0.hasEnded && $0.hasCompleteSegment }
        }
        if let other = begun(same) { return LivePlaylist(tag: tag, continuing: other) }
        if let other = begun(others) { return LivePlaylist(tag: tag, countingOnFrom: other) }
        return LivePlaylist(tag: tag, timing: timing.ofPlaylists)
    }

    func reports(beside key: Packaging.Key, _ uri: String) -> [LivePlaylist.Report] {
        PackagedRendition.allCases.filter { $0 != key.rendition }.compactMap { rendition in
            let other = Packaging.Key(stream: key.stream, rendition: rendition)
            guard isKept(other) else { return nil }
            return active[other]?.playlist.report(uri: rendition.uri(besides: uri))
        }
    }
}
