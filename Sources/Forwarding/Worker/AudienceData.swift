import Base

/// A stream's setting of how far its audience takes part in the stage's data tracks.
package enum DataAccess: Sendable {
    /// The audience receives nothing.
    case nothing
    /// The audience receives them.
    case receive
    /// The audience may also send on them.
    case send
}

/// A worker's share of data tracks that reach the audience: receivers, tracks in use, and limits.
///
/// Viewers can send only on tracks that a session on stage has, so that no viewer opens more channels than the stage
/// has labels. Messages to and from the audience are unreliable: beyond the limits they are dropped.
struct AudienceData {
    /// Maximum length of a viewer's message, in bytes.
    static let longestMessage = 1_024
    /// Maximum length of the label of a track that a viewer sends on, in bytes.
    static let longestLabel = 64
    /// Maximum number of messages to the audience per second, over all streams of the worker; each costs about 30 µs.
    static let deliveries = 10_000.0

    private var access: [StreamID: DataAccess] = [:]
    /// Connected viewers' sessions with data channels, in order of arrival.
    private var sessions: [StreamID: [SessionID]] = [:]
    /// The sessions on stage that have each track, by label.
    private var tracks: [StreamID: [String: Set<SessionID>]] = [:]
    /// Limits for the messages of each stream's audience on this worker.
    private var gates: [StreamID: MessageGate] = [:]
    /// Messages that may be sent now; grows by `deliveries` per second up to `deliveries`.
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

    /// Whether a viewer may open a track to send on.
    func maySend(_ label: String, in stream: StreamID) -> Bool {
        access[stream] == .send && label.utf8.count <= Self.longestLabel
    }

    /// Whether a session on stage has a track with a label.
    func hasTrack(_ label: String, in stream: StreamID) -> Bool { tracks[stream]?[label] != nil }

    /// Whether a viewer's message on a track may be passed on; if so, it is counted.
    mutating func admit(_ label: String, bytes: Int, in stream: StreamID, at now: MonotonicTime) -> Bool {
        guard maySend(label, in: stream), bytes <= Self.longestMessage, tracks[stream]?[label] != nil else {
            return false
        }
        return gates[stream, default: MessageGate(.audience, at: now)].admit(bytes: bytes, at: now)
    }

    /// The viewers' sessions that receive an event of a data track; empty if the rate limit is reached.
    mutating func receivers(of item: DataTrackItem, at now: MonotonicTime) -> [SessionID] {
        let all = sessions[item.stage] ?? []
        switch item.event {
        case .opened: tracks[item.stage, default: [:]][item.label, default: []].insert(item.session)
        case .closed:
            forget(item)
            // Every session that received something of the track has a channel to close.
            return all
        case .message, .said: break
        }
        guard access[item.stage] != nil, !all.isEmpty else { return [] }
        left = min(
            Self.deliveries, left + Double(max(now.nanoseconds(since: last), 0)) / 1e9 * Self.deliveries)
        last = now
        // A larger audience than the limit gets a message when the whole budget is there, and the next one later.
        guard left >= min(Double(all.count), Self.deliveries) else { return [] }
        left -= Double(all.count)
        return all
    }

    private mutating func forget(_ item: DataTrackItem) {
        tracks[item.stage]?[item.label]?.remove(item.session)
        if tracks[item.stage]?[item.label]?.isEmpty == true { tracks[item.stage]?[item.label] = nil }
        if tracks[item.stage]?.isEmpty == true { tracks[item.stage] = nil }
    }
}
