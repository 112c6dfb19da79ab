import CWebSockets

/// Responses from files, of which at most one piece is in memory.
///
/// Pieces are read on other threads and arrive as `piece` commands, so that a slow disk never blocks this thread.
extension ServiceLoop {
    /// Writes the piece that has been read, or starts reading the next one.
    /// - Returns: nil if the caller should call again, otherwise the result for libwebsockets.
    func proceed(_ exchange: Exchange, _ sending: inout Exchange.Sending, with file: HTTPFile) -> CInt? {
        if sending.hasSentHead, sending.offset == file.count { return finish(exchange, sending.response) }
        guard sending.hasSentHead, sending.piece.isEmpty else {
            let part = sending.piece.prefix(Self.chunkLength)
            var head = sending
            // `writePart` counts from the start of the piece; `sending.offset` counts from the start of the range.
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

    /// Continues with a piece that has been read; the send timeout starts again, as the disk's time does not count.
    func continueFile(_ id: UInt64, _ bytes: [UInt8]) {
        guard let exchange = exchanges[id], case .sending(var sending) = exchange.phase else { return }
        // The announced length cannot be kept any more; closing early is the only way to report it.
        guard !bytes.isEmpty else { return closeSoon(exchange.connection) }
        sending.piece = bytes
        sending.isReading = false
        exchange.phase = .sending(sending)
        exchange.deadline = now + settings.sendTimeout.milliseconds
        unsafe lws_callback_on_writable(exchange.wsi.pointer)
    }
}
