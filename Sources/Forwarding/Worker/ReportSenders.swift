import Base
import Peer
import Wire

/// Finds the session of an SRTP or SRTCP packet from an unknown address.
///
/// A NAT may give a client another address at any time. Browsers send an ICE check from there when the next one is
/// due, up to three seconds later; clients on libnice (GStreamer) send none. All of them continue to send media or
/// reports. The only identity in an encrypted packet is its sender's SSRC. So the SSRCs of each session's reports
/// lead to the session, and its keys show whether the packet is authentic. Chromium uses SSRC 1 if it only receives;
/// of sessions that share an SSRC, the likeliest are tried. Only a limited number of packets a second is looked at.
/// - Source: RFC 3711 §3.4 (the first eight bytes of SRTCP are not encrypted); RFC 3550 §5.1, §6.1.
struct ReportSenders {
    /// Maximum number of SSRCs per session: one for audio and one for video, twice each.
    static let limitOfSession = 4
    /// Maximum number of sessions per SSRC; further ones cannot be found by it.
    static let sharerLimit = 2_000
    /// Packets from unknown addresses that are looked at, per second.
    static let looksPerSecond = 50
    /// The same for packets whose SSRC several sessions share.
    static let sharedLooksPerSecond = 100

    private var sessions: [UInt32: [SessionID]] = [:]
    private var senders: [SessionID: [UInt32]] = [:]
    private var limit = PerSecondLimit(looksPerSecond)
    private var sharedLimit = PerSecondLimit(sharedLooksPerSecond)

    /// Remembers the SSRC of an authentic report.
    mutating func note(_ datagram: Span<UInt8>, of session: SessionID) {
        guard let ssrc = try? datagram.uint32(at: 4) else { return }
        let known = senders[session] ?? []
        guard !known.contains(ssrc), known.count < Self.limitOfSession else { return }
        senders[session] = known + [ssrc]
        guard sessions[ssrc]?.count ?? 0 < Self.sharerLimit else { return }
        sessions[ssrc, default: []].append(session)
    }

    mutating func remove(_ session: SessionID) {
        for ssrc in senders.removeValue(forKey: session) ?? [] {
            sessions[ssrc]?.removeAll { $0 == session }
            if sessions[ssrc]?.isEmpty == true { sessions[ssrc] = nil }
        }
    }

    /// The sessions that a report or media packet may belong to; empty if there are none, or the rate limit is
    /// reached.
    mutating func find(_ datagram: Span<UInt8>, _ kind: DatagramKind, at now: MonotonicTime) -> [SessionID] {
        guard let ssrc = try? datagram.uint32(at: kind == .rtp ? 8 : 4), let found = sessions[ssrc] else {
            return []
        }
        return (found.count == 1 ? limit.take(at: now) : sharedLimit.take(at: now)) ? found : []
    }

    // MARK: Likelihood

    /// Maximum number of sessions with the same SSRC that are tried.
    static let trials = 16
    /// A present client sends more often than this: browsers send feedback ten times a second while they receive.
    private static let pause = Duration.milliseconds(250)
    /// A client that has been silent for longer has not changed its address just now.
    private static let rest = Duration.seconds(3)

    /// The clients that may have changed their address just now, the likeliest first: those that fell silent a moment
    /// ago.
    /// - Parameter silences: how long each client has been silent.
    static func likeliest<Name>(_ silences: [(name: Name, silence: Duration)]) -> [Name] {
        let recent = silences.filter { $0.silence <= rest }
        let silent = recent.filter { $0.silence >= pause }.sorted { $0.silence < $1.silence }
        // The client may also be among those heard a moment ago; the one silent for longest comes first.
        let others = recent.filter { $0.silence < pause }.sorted { $0.silence > $1.silence }
        return (silent.prefix(trials / 2) + others.prefix(trials / 2)).map(\.name)
    }
}
