import Base
import CWebSockets
import Glibc

/// Answers to requests that libwebsockets refuses without any: those with a byte of zero in their address (`%00`).
///
/// It says nothing of them to us either, and closes the connection. What is left is the moment before it shuts the socket
/// down. With TLS there is none.
extension ServiceLoop {
    /// A connection that libwebsockets closes for its age is no bad request; its clocks go by whole seconds.
    private static let margin: UInt64 = 2_000

    func watchForLastWords() {
        cws_set_last_words(
            { user, socket in
                guard let user else { return }
                Unmanaged<ServiceLoop>.fromOpaque(user).takeUnretainedValue().sayLastWords(socket)
            }, Unmanaged.passUnretained(self).toOpaque())
    }

    private func sayLastWords(_ socket: CInt) {
        guard stopDeadline == nil, let connection = connectionOn[socket], !connection.isBusy,
            !connection.isRefused, !connection.isClosing, upgrades[connection.wsi] == nil,
            // Both we and libwebsockets close what is idle for long.
            let deadline = connection.deadline, deadline > now + Self.margin,
            cws_is_peer_there(socket) != 0,
            // Where libwebsockets did answer, that has to do.
            cws_bytes_given(socket) == Int64(connection.given)
        else { return }
        let response = handler.refusal(400, "The request's address, or its header, is malformed.")
        let bytes = ResponseHead(response, closing: true, now: time(nil)).bytes + response.body
        cws_say(socket, bytes, bytes.count)
        log.debug("request-malformed", ["address": connection.address])
    }
}
