import Base
import Peer
import Wire

/// Finds the session of an SRTP or SRTCP packet that comes from an unknown address.
///
/// A NAT may give a client another address at any time. Browsers send an ICE check from there when their next one is
/// due, up to three seconds later, those on libnice (GStreamer) none; all go on sending. The only name in an encrypted
/// packet is the SSRC of its sender, so the SSRCs of each session's reports lead to it, and its keys tell whether the
/// packet is authentic. Chromium names itself 1 where it only receives: of those who share a name the likeliest are
/// tried. A few a second are looked at.
/// - Source: RFC 3711 §3.4 (the first eight bytes of SRTCP are not encrypted); RFC 3550 §5.1, §6.1.
struct ReportSenders {
    /// Of one session: one for sound and one for pictures, and each once more.
    static let limitOfSession = 4
    /// Sessions that share a name; more are not found by it.
    static let sharerLimit = 2_000
    /// Packets from nowhere that are looked at a second.
    static let looksPerSecond = 50
    /// And of those whose name several share.
    static let sharedLooksPerSecond = 100

    private var sessions: [UInt32: [SessionID]] = [:]
    private var senders: [SessionID: [UInt32]] = [:]
    private var limit = PerSecondLimit(looksPerSecond)
    private var sharedLimit = PerSecondLimit(sharedLooksPerSecond)

    /// Notes who sent an authentic report.
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

    /// Whose a report, or a packet of media, may be; empty for nobody's, and where too many came lately.
    mutating func find(_ datagram: Span<UInt8>, _ kind: DatagramKind, at now: MonotonicTime) -> [SessionID] {
        guard let ssrc = try? datagram.uint32(at: kind == .rtp ? 8 : 4), let found = sessions[ssrc] else {
            return []
        }
        return (found.count == 1 ? limit.take(at: now) : sharedLimit.take(at: now)) ? found : []
    }

    // MARK: Likelihood

    /// Of those who share a name so many are tried.
    static let trials = 16
    /// Who is there says so more often: browsers send feedback ten times a second while they receive.
    private static let pause = Duration.milliseconds(250)
    /// Who was silent for longer has not just moved.
    private static let rest = Duration.seconds(3)

    /// Those who may have moved just now, the likeliest first: who fell silent a moment ago.
    /// - Parameter silences: of each, for how long nothing has come.
    static func likeliest<Name>(_ silences: [(name: Name, silence: Duration)]) -> [Name] {
        let recent = silences.filter { $0.silence <= rest }
        let silent = recent.filter { $0.silence >= pause }.sorted { $0.silence < $1.silence }
        // Who moved may be among those who spoke a moment ago: who has been silent for longest first.
        let others = recent.filter { $0.silence < pause }.sorted { $0.silence > $1.silence }
        return (silent.prefix(trials / 2) + others.prefix(trials / 2)).map(\.name)
    }
}
