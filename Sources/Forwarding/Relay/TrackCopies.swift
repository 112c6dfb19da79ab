import Base
import Peer

/// A worker's copies of tracks that other workers receive from their publishers, and what uses each copy.
///
/// Slots and programmes share a copy.
struct TrackCopies {
    struct Copy {
        let track: Track
        /// Number of slots to which control attached it.
        fileprivate(set) var slots = 0
        /// The stream whose source publishes it; nil if the copy is for slots alone.
        fileprivate(set) var programme: StreamID?
    }

    private(set) var all: [TrackKey: Copy] = [:]
    /// The publishers' workers; tracks refer to them weakly.
    private let owners: [Int: RemoteTrackOwner]
    private let fanOut: FanOut

    /// - Parameter links: nil for a node with a single worker, where there is nothing to copy.
    init(over links: WorkerLinks?, fanOut: FanOut) {
        var owners: [Int: RemoteTrackOwner] = [:]
        if let links {
            for worker in links.others { owners[worker] = RemoteTrackOwner(worker: worker, links: links) }
        }
        self.owners = owners
        self.fanOut = fanOut
    }

    /// Hot path: the copy of a track; nil if there is none.
    subscript(key: TrackKey) -> Track? { all[key]?.track }

    /// Uses a track in one more slot.
    /// - Returns: the copy, which is created on first use; nil if it is not a track of another worker.
    mutating func addSlot(_ published: PublishedTrack) -> Copy? {
        guard var copy = copy(of: published) else { return nil }
        copy.slots += 1
        all[published.key] = copy
        return copy
    }

    /// Uses a track in one slot less.
    /// - Returns: whether that was the last one.
    mutating func removeSlot(_ key: TrackKey) -> Bool {
        guard var copy = all[key], copy.slots > 0 else { return false }
        copy.slots -= 1
        all[key] = copy
        return copy.slots == 0
    }

    /// Uses a track in the programme of its publisher's stream.
    /// - Returns: the copy, which is created on first use; nil if it is not a track of another worker.
    mutating func add(_ published: PublishedTrack, toProgrammeOf stream: StreamID) -> Track? {
        guard var copy = copy(of: published) else { return nil }
        copy.programme = stream
        all[published.key] = copy
        return copy.track
    }

    /// Handles that a track's publisher is no longer the source of its stream.
    mutating func removeFromProgramme(_ key: TrackKey) {
        all[key]?.programme = nil
    }

    /// Forgets a copy, unless a slot or a programme uses it.
    mutating func forgetIfUnused(_ key: TrackKey) {
        guard let copy = all[key], copy.slots == 0, copy.programme == nil else { return }
        all[key] = nil
    }

    private func copy(of published: PublishedTrack) -> Copy? {
        let key = published.key
        if let known = all[key] { return known }
        guard let owner = owners[key.worker] else { return nil }
        let reader = PacketReader(formats: published.plan.formats, ids: published.extensions)
        return Copy(
            track: Track(key: key, plan: published.plan, reader: reader, owner: owner, fanOut: fanOut))
    }
}
