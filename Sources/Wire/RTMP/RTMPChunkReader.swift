/// Puts messages together out of the chunks that they come in, from the bytes of one connection.
///
/// Takes the stream in pieces of any size. What the other end may make us keep is bounded: chunk streams, the length of
/// a message, and the bytes of all that are not complete.
/// - Source: Adobe, RTMP 1.0 (2012), §5.3 (chunks), §5.4.1 and §5.4.2 (chunk size, abort).
package struct RTMPChunkReader: Sendable {
    /// Chunk streams of a connection; publishers use four or five.
    package static let streamLimit = 32
    private static let initialChunkSize = 128

    /// What a chunk stream's next header may leave out.
    private struct ChunkStream: Sendable {
        var timestamp: UInt32 = 0
        /// What the next message is later if its header does not say.
        var step: UInt32 = 0
        var length = 0
        var kind: UInt8 = 0
        var stream: UInt32 = 0
        /// Whether headers end with a time stamp of four bytes.
        var isExtended = false
        /// Nil between messages.
        var payload: [UInt8]?
    }

    /// A chunk whose header was read.
    private struct Chunk: Sendable {
        let id: UInt32
        /// Of its payload, in bytes.
        var rest: Int
    }

    /// In bytes; longer messages are refused.
    package var messageLimit: Int
    private var chunkSize = initialChunkSize
    private var streams: [UInt32: ChunkStream] = [:]
    /// Of a header that is not complete.
    private var head: [UInt8] = []
    private var chunk: Chunk?
    /// Bytes of messages that are not complete.
    private var kept = 0

    /// - Parameter messageLimit: in bytes.
    package init(messageLimit: Int) {
        self.messageLimit = messageLimit
    }

    /// Takes bytes in.
    /// - Parameter visit: is given each message that is complete.
    package mutating func read(
        _ bytes: Span<UInt8>, _ visit: (RTMPMessage) -> Void
    ) throws(WireError) {
        var offset = 0
        while offset < bytes.count {
            if var chunk {
                let count = min(chunk.rest, bytes.count - offset)
                try append(bytes, offset..<(offset + count), to: chunk.id)
                offset += count
                chunk.rest -= count
                self.chunk = chunk.rest > 0 ? chunk : nil
                if chunk.rest == 0 { try complete(chunk.id, visit) }
            } else {
                head.append(try bytes.uint8(at: offset))
                offset += 1
                guard let header = try Header(head.span, streams) else { continue }
                head.removeAll(keepingCapacity: true)
                try begin(header, visit)
            }
        }
    }

    // MARK: Headers

    /// A chunk's header, as far as it says something.
    private struct Header {
        let id: UInt32
        /// 0 for all fields, 3 for none.
        let format: UInt8
        /// As it stands there: absolute in format 0, else a step; nil in format 3.
        var time: UInt32?
        var length: Int?
        var kind: UInt8?
        var stream: UInt32?
        var isExtended = false

        /// Nil while it is not complete.
        init?(_ bytes: Span<UInt8>, _ streams: [UInt32: ChunkStream]) throws(WireError) {
            let first = try bytes.uint8(at: 0)
            format = first >> 6
            let basic = first & 0x3F == 0 ? 2 : first & 0x3F == 1 ? 3 : 1
            guard bytes.count >= basic else { return nil }
            switch basic {
            case 1: id = UInt32(first & 0x3F)
            case 2: id = try UInt32(bytes.uint8(at: 1)) + 64
            default: id = try UInt32(bytes.uint8(at: 2)) << 8 + UInt32(bytes.uint8(at: 1)) + 64
            }
            let known = streams[id]
            guard format == 0 || known != nil else { throw .invalid(.rtmpChunk) }
            let fields = [11, 7, 3, 0][Int(format)]
            guard bytes.count >= basic + fields else { return nil }
            if format < 3 {
                let field = try bytes.uint24(at: basic)
                isExtended = field == 0xFF_FFFF
                time = field
            } else {
                isExtended = known?.isExtended ?? false
            }
            if isExtended {
                guard bytes.count >= basic + fields + 4 else { return nil }
                let extended = try bytes.uint32(at: basic + fields)
                if format < 3 { time = extended }
            }
            guard format < 2 else { return }
            length = try Int(bytes.uint24(at: basic + 3))
            kind = try bytes.uint8(at: basic + 6)
            // The one number that is little-endian (§5.3.1.2.5).
            if format == 0 { stream = try bytes.uint32(at: basic + 7).byteSwapped }
        }
    }

    private mutating func begin(_ header: Header, _ visit: (RTMPMessage) -> Void) throws(WireError) {
        var known = streams[header.id] ?? ChunkStream()
        if known.payload == nil {
            if let length = header.length { known.length = length }
            if let kind = header.kind { known.kind = kind }
            if let stream = header.stream { known.stream = stream }
            known.isExtended = header.isExtended
            // A step of format 3 after format 0 is that one's time (§5.3.1.2.4).
            if let time = header.time { known.step = time }
            known.timestamp = header.format == 0 ? known.step : known.timestamp &+ known.step
            guard known.length <= messageLimit else { throw .invalid(.rtmpMessageLength) }
            known.payload = []
        } else if header.format < 3 {
            // A message may be given up by an abort only.
            throw .invalid(.rtmpChunk)
        }
        guard streams[header.id] != nil || streams.count < Self.streamLimit else {
            throw .invalid(.rtmpChunkStreams)
        }
        streams[header.id] = known
        let missing = known.length - (known.payload?.count ?? 0)
        guard missing > 0 else { return try complete(header.id, visit) }
        chunk = Chunk(id: header.id, rest: min(missing, chunkSize))
    }

    // MARK: Payloads

    private mutating func append(
        _ bytes: Span<UInt8>, _ range: Range<Int>, to id: UInt32
    ) throws(WireError) {
        kept += range.count
        guard kept <= messageLimit + messageLimit / 2 else { throw .invalid(.rtmpMessageLength) }
        // Taken out, so that it is not copied.
        guard var payload = streams[id]?.payload.take() else { return }
        // Grows by doubling: chunks may be of one byte.
        payload += try bytes.bytes(range)
        streams[id]?.payload = payload
    }

    /// Hands a message over, if all of it is there.
    private mutating func complete(_ id: UInt32, _ visit: (RTMPMessage) -> Void) throws(WireError) {
        guard let known = streams[id], let payload = known.payload, payload.count >= known.length else {
            return
        }
        streams[id]?.payload = nil
        kept -= payload.count
        let message = RTMPMessage(
            RTMPMessage.Kind(rawValue: known.kind), timestamp: known.timestamp, stream: known.stream,
            payload: payload)
        switch message.kind {
        case .setChunkSize:
            let size = try payload.span.uint32(at: 0)
            // A size of 0, or with the highest bit, cannot be (§5.4.1); the rest is bounded by the messages.
            guard size > 0, size < 1 << 31 else { throw .invalid(.rtmpChunkSize) }
            chunkSize = Int(size)
        case .abort:
            let aborted = try payload.span.uint32(at: 0)
            kept -= streams[aborted]?.payload?.count ?? 0
            streams[aborted]?.payload = nil
        default: visit(message)
        }
    }
}

extension WireError.Field {
    /// A header that leaves out what was never said, or begins a message within another.
    package static var rtmpChunk: Self { .init("rtmp.chunk") }
    /// More chunk streams than anybody needs.
    package static var rtmpChunkStreams: Self { .init("rtmp.chunkStreams") }
    /// No chunk can be of that size.
    package static var rtmpChunkSize: Self { .init("rtmp.chunkSize") }
    /// A message, or all that are not complete, beyond the reader's limit.
    package static var rtmpMessageLength: Self { .init("rtmp.messageLength") }
}
