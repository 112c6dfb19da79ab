import Base
import HLS
import Synchronization
import Transcoder

/// The playlists of the packaging desk as they were when it last changed them, on whatever thread.
///
/// Most requests are for files that lie in memory. The thread that read the request answers them: there is no task, no
/// other thread, and no wait for the desk.
final class PlaylistsAtHand: Sendable {
    private struct Entry {
        var playlist: LivePlaylist
        var isAsked = false
    }

    private let entries = Mutex<[StreamID: [PackagedRendition: Entry]]>([:])

    /// - Parameter playlist: nil where viewers can have nothing of it.
    func set(_ playlist: LivePlaylist?, of key: Packaging.Key) {
        entries.withLock { entries in
            let isAsked = entries[key.stream]?[key.rendition]?.isAsked ?? false
            entries[key.stream, default: [:]][key.rendition] = playlist.map {
                Entry(playlist: $0, isAsked: isAsked)
            }
            if entries[key.stream]?.isEmpty == true { entries[key.stream] = nil }
        }
    }

    /// A part, segment or initialization segment that lies in memory; nil for any other.
    func file(named name: String, of stream: StreamID) -> [UInt8]? {
        let renditions = entries.withLock { $0[stream] } ?? [:]
        for (rendition, entry) in renditions {
            let (standing, bytes) = entry.playlist.file(named: name)
            guard standing == .there else { continue }
            // The desk may have set another one meanwhile.
            if !entry.isAsked { entries.withLock { $0[stream]?[rendition]?.isAsked = true } }
            return bytes
        }
        return nil
    }

    /// Whether a client was given a file since the last call.
    func takeAsked(_ key: Packaging.Key) -> Bool {
        entries.withLock { entries in
            let isAsked = entries[key.stream]?[key.rendition]?.isAsked ?? false
            if isAsked { entries[key.stream]?[key.rendition]?.isAsked = false }
            return isAsked
        }
    }
}
