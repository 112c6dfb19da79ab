import Base

/// What a stream's audience has of the data tracks of its stage.
package enum DataAccess: Sendable {
    /// Nothing of them reaches it.
    case nothing
    /// It gets what they carry.
    case receive
    /// It may say something on them, too.
    case send
}

/// A worker's part in data tracks that reach the audience: who gets them, what they are called, and how much may be
/// said.
///
/// The audience sends on tracks alone that somebody on the stage has, so that nobody gets more channels than the stage
/// has names. What it says, and what it gets, may be lost: beyond the limits it is left out.
struct AudienceData {
    /// In bytes, of what one of the audience says at once.
    static let longestMessage = 1_024
    /// In bytes, of a track's name that it says it on.
    static let longestLabel = 64
    /// Messages to the audience, of all streams of the worker: each costs some 30 µs.
    static let deliveries = 10_000.0

    private var access: [StreamID: DataAccess] = [:]
    /// Connected sessions that have data channels, in the order in which they came.
    private var sessions: [StreamID: [SessionID]] = [:]
    /// Which sessions on the stage have a track, by its name.
    private var tracks: [StreamID: [String: Set<SessionID>]] = [:]
    /// Of what each stream's audience says here.
    private var gates: [StreamID: MessageGate] = [:]
    private var left = deliveries
    private var last = MonotonicTime.zero

    mutating func setAccess(_ new: DataAccess, of stream: StreamID) {
        access[stream] = new == .nothing ? nil : new
        if new != .send { gates[stream] = nil }
    }

    mutating func join(_ session: SessionID, _ stream: StreamID) {
        sessions[stream, default: []].append(session)
    }

    mutating func leave(_ session: SessionID, _ stream: StreamID) {
        sessions[stream]?.removeAll { $0 == session }
        if sessions[stream]?.isEmpty == true { sessions[stream] = nil }
    }

    /// Whether somebody of the audience may open a track to send on.
    func maySend(_ label: String, in stream: StreamID) -> Bool {
        access[stream] == .send && label.utf8.count <= Self.longestLabel
    }

    /// Whether something that one of the audience says on a track goes on; it is counted if so.
    mutating func admit(_ label: String, bytes: Int, in stream: StreamID, at now: MonotonicTime) -> Bool {
        guard maySend(label, in: stream), bytes <= Self.longestMessage, tracks[stream]?[label] != nil else {
            return false
        }
        return gates[stream, default: MessageGate(.audience, at: now)].admit(bytes: bytes, at: now)
    }

    /// Those of the audience who get something of a track.
    mutating func receivers(of item: DataTrackItem, at now: MonotonicTime) -> [SessionID] {
        let all = sessions[item.stage] ?? []
        switch item.event {
        case .opened: tracks[item.stage, default: [:]][item.label, default: []].insert(item.session)
        case .closed:
            forget(item)
            // Whoever got something has a channel to be closed.
            return all
        case .message, .said: break
        }
        guard access[item.stage] != nil, !all.isEmpty else { return [] }
        left = min(
            Self.deliveries, left + Double(max(now.nanoseconds(since: last), 0)) / 1e9 * Self.deliveries)
        last = now
        guard left >= Double(all.count) else { return [] }
        left -= Double(all.count)
        return all
    }

    private mutating func forget(_ item: DataTrackItem) {
        tracks[item.stage]?[item.label]?.remove(item.session)
        if tracks[item.stage]?[item.label]?.isEmpty == true { tracks[item.stage]?[item.label] = nil }
        if tracks[item.stage]?.isEmpty == true { tracks[item.stage] = nil }
    }
}
