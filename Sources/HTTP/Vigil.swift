import Base
import CWebSockets

/// Which WebSocket is looked after next.
///
/// A queue, because all are looked after equally often; so thousands cost little, and never all at once.
/// libwebsockets' own heartbeats would: it keeps its timers in one sorted list, through which each ping and each
/// answer walks.
struct Vigil {
    /// Milliseconds of silence after which a client is asked whether it is there, and after which it is given up.
    let ping: UInt64
    let hangup: UInt64
    /// Milliseconds between two looks at one.
    private let interval: UInt64
    private var turns: [(socket: UInt64, at: UInt64)] = []
    private var first = 0

    init(_ settings: HTTPServerSettings) {
        ping = settings.webSocketPing.milliseconds
        hangup = max(settings.webSocketHangup.milliseconds, ping + 1)
        interval = max(min(ping, hangup - ping) / 4, 1)
    }

    mutating func add(_ socket: UInt64, at now: UInt64) {
        turns.append((socket, now + interval))
    }

    /// The next one whose turn it is.
    mutating func next(at now: UInt64) -> UInt64? {
        guard first < turns.count, turns[first].at <= now else { return nil }
        let socket = turns[first].socket
        first += 1
        if first >= 256, first * 2 >= turns.count {
            turns.removeFirst(first)
            first = 0
        }
        return socket
    }
}

/// Heartbeats of WebSockets: who is silent is asked, and who does not answer is gone.
extension ServiceLoop {
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

    /// A client that is not asked because its messages pile up is silent all the same.
    ///
    /// The ping carries a byte, which the answer repeats (RFC 6455 §5.5.3): libwebsockets does not tell of empty pongs.
    private func sendPing(to session: SocketSession) {
        guard unsafe lws_partial_buffered(session.wsi.pointer) == 0 else { return }
        let start = unsafe scratch.baseAddress?.advanced(by: prefix).assumingMemoryBound(to: UInt8.self)
        unsafe start?.pointee = 0
        if unsafe lws_write(session.wsi.pointer, start, 1, LWS_WRITE_PING) < 0 {
            unsafe cws_kill(session.wsi.pointer)
        }
    }

    func noteSign(of wsi: LibraryConnection) {
        socketOf[wsi]?.heardAt = now
    }
}
