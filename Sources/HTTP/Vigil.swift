import Base
import CWebSockets

/// The order in which WebSockets are checked for silence.
///
/// A queue, because all sockets are checked at the same interval: a check costs constant time, and the checks of
/// thousands of sockets are spread over time. libwebsockets' own heartbeats keep all timers in one sorted list, which
/// each ping and each pong traverses.
struct Vigil {
    /// Milliseconds of silence after which a client is pinged.
    let ping: UInt64
    /// Milliseconds of silence after which the connection counts as lost.
    let hangup: UInt64
    /// Milliseconds between two checks of one socket: a quarter of the shorter span, which bounds the error of both.
    private let interval: UInt64
    /// Sockets in order of their next check; those before `first` are done.
    private var turns: [(socket: UInt64, at: UInt64)] = []
    private var first = 0

    init(_ settings: HTTPServerSettings) {
        ping = settings.webSocketPing.milliseconds
        hangup = max(settings.webSocketHangup.milliseconds, ping + 1)
        interval = max(min(ping, hangup - ping) / 4, 1)
    }

    /// Schedules a socket's next check; a socket that closes meanwhile stays queued and is skipped then.
    mutating func add(_ socket: UInt64, at now: UInt64) {
        turns.append((socket, now + interval))
    }

    /// Removes and returns a socket whose check is due; nil if none is.
    mutating func next(at now: UInt64) -> UInt64? {
        guard first < turns.count, turns[first].at <= now else { return nil }
        let socket = turns[first].socket
        first += 1
        // Shifts the array once per many sockets, so that removal from the front takes constant time on average.
        if first >= 256, first * 2 >= turns.count {
            turns.removeFirst(first)
            first = 0
        }
        return socket
    }
}

/// Heartbeats of WebSockets: a silent client is pinged, and one that stays silent is disconnected.
/// - Source: RFC 6455 §5.5.2, §5.5.3.
extension ServiceLoop {
    /// Pings or disconnects the sockets whose check is due.
    func keepVigil() {
        while let id = vigil.next(at: now) {
            guard let session = sockets[id] else { continue }
            let silence = now - min(now, session.heardAt)
            guard silence < vigil.hangup else {
                log.debug("websocket-silent", ["address": session.connection.remoteAddress])
                unsafe cws_kill(session.wsi.pointer)
                continue
            }
            vigil.add(id, at: now)
            guard silence >= vigil.ping, now - session.pingedAt >= vigil.ping, session.peerClose == nil,
                !session.connection.isClosing
            else { continue }
            session.pingedAt = now
            sendPing(to: session)
        }
    }

    /// Sends a ping, unless earlier messages have not left yet; then the client's silence counts all the same.
    ///
    /// The ping carries one byte, which the pong repeats (RFC 6455 §5.5.3): libwebsockets does not report empty pongs.
    private func sendPing(to session: SocketSession) {
        guard unsafe lws_partial_buffered(session.wsi.pointer) == 0 else { return }
        let start = unsafe scratch.baseAddress?.advanced(by: prefix).assumingMemoryBound(to: UInt8.self)
        unsafe start?.pointee = 0
        if unsafe lws_write(session.wsi.pointer, start, 1, LWS_WRITE_PING) < 0 {
            unsafe cws_kill(session.wsi.pointer)
        }
    }

    /// Records that the client has sent something.
    func noteSign(of wsi: LibraryConnection) {
        guard let session = socketOf[wsi], !session.connection.isClosing else { return }
        session.heardAt = now
    }
}
