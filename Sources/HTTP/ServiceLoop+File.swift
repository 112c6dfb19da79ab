import CWebSockets

/// Answers that are files: never more of one in memory than a piece.
extension ServiceLoop {
    /// Hands over what has been read, and has the next piece read.
    /// - Returns: nil to be asked again, what to return to libwebsockets otherwise.
    func proceed(_ exchange: Exchange, _ sending: inout Exchange.Sending, with file: HTTPFile) -> CInt? {
        if sending.hasSentHead, sending.offset == file.count { return finish(exchange, sending.response) }
        guard sending.hasSentHead, sending.piece.isEmpty else {
            let part = sending.piece.prefix(Self.chunkLength)
            var head = sending
            // Its offset counts the file, not the piece.
            head.offset = 0
            guard writePart(exchange, &head, Array(part)) else { return -1 }
            sending.hasSentHead = true
            sending.offset += part.count
            sending.piece.removeFirst(part.count)
            exchange.phase = .sending(sending)
            return nil
        }
        if !sending.isReading {
            sending.isReading = true
            exchange.phase = .sending(sending)
            let (id, link) = (exchange.id, link)
            file.read(from: sending.offset) { link.post(.piece(id, $0)) }
        }
        return 0
    }

    /// A piece has been read: who takes pieces has time to take more.
    func continueFile(_ id: UInt64, _ bytes: [UInt8]) {
        guard let exchange = exchanges[id], case .sending(var sending) = exchange.phase else { return }
        guard !bytes.isEmpty else { return closeSoon(exchange.connection) }
        sending.piece = bytes
        sending.isReading = false
        exchange.phase = .sending(sending)
        exchange.deadline = now + settings.sendTimeout.milliseconds
        unsafe lws_callback_on_writable(exchange.wsi.pointer)
    }
}
