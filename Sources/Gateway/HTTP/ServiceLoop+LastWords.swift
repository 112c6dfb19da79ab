import Base
import CWebSockets
import Glibc

/// Answers to requests of which libwebsockets does not tell us.
///
/// What its parser refuses it answers with a page of its own (`%zz` in an address), or not at all (`%00`). Of the page we
/// are asked instead; where nothing is said, what is left is the moment before it shuts the connection down.
extension ServiceLoop {
    /// A connection that libwebsockets closes for its age is no bad request; its clocks go by whole seconds.
    private static let margin: UInt64 = 2_000

    func speakForTheLibrary() {
        var hooks = cws_hooks()
        hooks.user = Unmanaged.passUnretained(self).toOpaque()
        hooks.last_words = { user, socket, tls in ServiceLoop.of(user)?.sayLastWords(socket, tls) }
        hooks.page = { user, wsi, status in
            guard let wsi, let loop = ServiceLoop.of(user) else { return -1 }
            return loop.answerForTheLibrary(wsi, Int(status))
        }
        cws_set_hooks(&hooks)
    }

    private func sayLastWords(_ socket: CInt, _ tls: UnsafeMutableRawPointer?) {
        guard (tls != nil) == (settings.tls != nil), stopDeadline == nil,
            let connection = connectionOn[socket], !connection.isBusy, !connection.isRefused,
            !connection.isClosing, upgrades[connection.wsi] == nil,
            // Both we and libwebsockets close what is idle for long.
            let deadline = connection.deadline, deadline > now + Self.margin,
            cws_is_peer_there(socket) != 0,
            // Where something else was said, that has to do. With TLS there is one request for each connection.
            tls == nil ? cws_bytes_given(socket) == Int64(connection.given) : connection.given == 0
        else { return }
        connection.isRefused = true
        let response = handler.refusal(400, "The request's address, or its header, is malformed.")
        let bytes = ResponseHead(response, closing: true, now: time(nil)).bytes + response.body
        cws_say(socket, tls, bytes, bytes.count)
        noteRefusal(of: connection, response.status)
    }

    /// - Returns: that the connection has to be closed.
    private func answerForTheLibrary(_ wsi: OpaquePointer, _ status: Int) -> CInt {
        guard let connection = connection(of: wsi), !connection.isBusy, !connection.isRefused else {
            return -1
        }
        connection.isRefused = true
        // It takes for forbidden what cannot be understood.
        let response =
            status == 403
            ? handler.refusal(400, "The request's address, or its Upgrade, is malformed.")
            : handler.refusal(status, HTTPResponse.reasonPhrase(status))
        let head = ResponseHead(response, closing: true, now: time(nil))
        _ = write(wsi, head.bytes, response.body[...], LWS_WRITE_HTTP)
        noteRefusal(of: connection, response.status)
        return -1
    }

    private func noteRefusal(of connection: Connection, _ status: Int) {
        counters.countAnswer(status)
        log.debug("request-malformed", ["address": connection.address, "status": status])
    }
}
