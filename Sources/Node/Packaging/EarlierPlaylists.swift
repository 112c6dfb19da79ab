import HLS
import Transcoder

/// The numbers of playlists that ended because nobody asked for them, of streams that went on.
///
/// A player that returns after a pause, such as on a phone that was put away, loads the address that it knows. Its
/// numbers must go on from there: players take lower ones for an error, and what they wait for would be refused as too
/// far ahead.
/// - Source: RFC 8216bis §6.2.2.
struct EarlierPlaylists {
    /// Most that are remembered; the oldest are forgotten first.
    static let limit = 1_000

    /// Without segments.
    private var ends: [Packaging.Key: LivePlaylist] = [:]
    /// The keys of `ends`, the oldest first.
    private var order: [Packaging.Key] = []

    /// Notes the end of a packaging.
    /// - Parameter playlist: forgotten if its stream has ended, as players were told so.
    mutating func note(_ playlist: LivePlaylist?, of key: Packaging.Key) {
        guard let playlist, playlist.hasEnded || playlist.hasCompleteSegment else { return }
        let key = Self.numbered(key)
        order.removeAll { $0 == key }
        guard !playlist.hasEnded else {
            ends[key] = nil
            return
        }
        order.append(key)
        let end = LivePlaylist(tag: "", countingOnFrom: playlist)
        // One with longer segments falls behind the others, and may be the last of them to end.
        if end.nextSequenceNumber >= ends[key]?.nextSequenceNumber ?? 0 { ends[key] = end }
        while order.count > Self.limit { ends[order.removeFirst()] = nil }
    }

    /// A playlist that goes on after the one that ended; nil if there is none.
    func playlist(tag: String, after key: Packaging.Key) -> LivePlaylist? {
        ends[Self.numbered(key)].map { LivePlaylist(tag: tag, countingOnFrom: $0, isInterrupted: true) }
    }

    /// The key for the renditions that share their numbers: all with pictures.
    private static func numbered(_ key: Packaging.Key) -> Packaging.Key {
        key.rendition == .sound ? key : Packaging.Key(stream: key.stream, rendition: .source)
    }
}
