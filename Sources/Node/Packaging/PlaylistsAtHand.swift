import Base
import HLS
import Synchronization
import Transcoder

/// Copies of the packaging desk's playlists, as of its last change, for any thread.
///
/// Most requests are for files in memory. The thread that read the request answers them from here: no task, no other
/// thread, and no wait for the desk. The copies share their bytes with the desk's playlists.
final class PlaylistsAtHand: Sendable {
    private struct Entry {
        var playlist: LivePlaylist
        /// Whether a file was served from here since the desk last looked.
        var isAsked = false
    }

    private let entries = Mutex<[StreamID: [PackagedRendition: Entry]]>([:])

    /// Replaces the playlist of a rendition.
    /// - Parameter playlist: nil where viewers can get nothing of it.
    func set(_ playlist: LivePlaylist?, of key: Packaging.Key) {
        entries.withLock { entries in
            let isAsked = entries[key.stream]?[key.rendition]?.isAsked ?? false
            entries[key.stream, default: [:]][key.rendition] = playlist.map {
                Entry(playlist: $0, isAsked: isAsked)
            }
            if entries[key.stream]?.isEmpty == true { entries[key.stream] = nil }
        }
    }

    /// Returns a part, segment or initialization segment that is in memory; nil for any other.
    func file(named name: String, of stream: StreamID) -> [UInt8]? {
        // Only this line and the note below hold the lock: many threads read at the same time.
        let renditions = entries.withLock { $0[stream] } ?? [:]
        for (rendition, entry) in renditions {
            let (standing, bytes) = entry.playlist.file(named: name)
            guard standing == .there else { continue }
            // The desk may have set another entry in the meantime, so only the flag is written.
            if !entry.isAsked { entries.withLock { $0[stream]?[rendition]?.isAsked = true } }
            return bytes
        }
        return nil
    }

    /// Returns whether a file was served since the last call, and clears the note.
    ///
    /// The desk does not see these requests. This is how it learns that a player still watches.
    func takeAsked(_ key: Packaging.Key) -> Bool {
        entries.withLock { entries in
            let isAsked = entries[key.stream]?[key.rendition]?.isAsked ?? false
            if isAsked { entries[key.stream]?[key.rendition]?.isAsked = false }
            return isAsked
        }
    }
}
