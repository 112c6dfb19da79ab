import Base
import Peer
import Wire

/// Finds the session of an RTCP packet that comes from an unknown address.
///
/// A NAT may give a client another address at any time. Most clients send an ICE check from there; those on libnice
/// (GStreamer) only go on sending, and the only name in an encrypted packet is the SSRC of its sender. So the SSRCs of
/// each session's reports lead to it, and its keys tell whether the packet is authentic. A few a second are looked at.
/// - Source: RFC 3711 §3.4 (the first eight bytes of SRTCP are not encrypted); RFC 3550 §6.1.
struct ReportSenders {
    /// Of one session: one for sound and one for pictures, and each once more.
    static let limitOfSession = 4
    /// Packets from nowhere that are looked at a second.
    static let looksPerSecond = 50

    /// Where two sessions use one, as those do who number them from 1, the first keeps it: such clients check.
    private var sessions: [UInt32: SessionID] = [:]
    private var senders: [SessionID: [UInt32]] = [:]
    private var limit = PerSecondLimit(looksPerSecond)

    /// Notes who sent an authentic packet.
    mutating func note(_ datagram: Span<UInt8>, of session: SessionID) {
        guard let ssrc = try? datagram.uint32(at: 4) else { return }
        let known = senders[session] ?? []
        guard !known.contains(ssrc), known.count < Self.limitOfSession else { return }
        senders[session] = known + [ssrc]
        if sessions[ssrc] == nil { sessions[ssrc] = session }
    }

    mutating func remove(_ session: SessionID) {
        for ssrc in senders.removeValue(forKey: session) ?? [] where sessions[ssrc] == session {
            sessions[ssrc] = nil
        }
    }

    /// Whose a packet claims to be; nil for nobody's, and where too many came lately.
    mutating func find(_ datagram: Span<UInt8>, at now: MonotonicTime) -> SessionID? {
        guard let ssrc = try? datagram.uint32(at: 4), let id = sessions[ssrc], limit.take(at: now) else {
            return nil
        }
        return id
    }
}
