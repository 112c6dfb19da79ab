/// Assembles messages from the chunks of one connection.
///
/// Accepts the stream in pieces of any size. The memory that a peer can occupy is bounded: by limits for chunk
/// streams, for the length of a message, and for the bytes of all incomplete messages.
/// - Source: Adobe, RTMP 1.0 (2012), §5.3 (chunks), §5.4.1 and §5.4.2 (chunk size, abort).
package struct RTMPChunkReader: Sendable {
    /// Most chunk streams of a connection; publishers use four or five.
    package static let streamLimit = 32
    private static let initialChunkSize = 128
    /// Length in bytes below which a chunk that does not end its message is counted; encoders send 128 or more.
    package static let shortChunk = 64

    /// The last values of a chunk stream, which its next header may omit.
    private struct ChunkStream: Sendable {
        var timestamp: UInt32 = 0
        /// The timestamp difference that a header without a time repeats.
        var step: UInt32 = 0
        var length = 0
        var kind: UInt8 = 0
        var stream: UInt32 = 0
        /// Whether headers end with an extended timestamp of four bytes.
        var isExtended = false
        /// The incomplete message; nil between messages.
        var payload: [UInt8]?
    }

    /// A chunk whose header has been read.
    private struct Chunk: Sendable {
        let id: UInt32
        /// Missing bytes of its payload.
        var rest: Int
    }

    /// In bytes; longer messages are refused.
    package var messageLimit: Int
    /// Complete messages so far, with those that are handled here.
    package private(set) var messageCount = 0
    /// Chunks so far that were shorter than `shortChunk` and did not end their message.
    ///
    /// Each costs nearly as much as a message, and a peer may announce a size of one byte (§5.4.1).
    package private(set) var shortChunkCount = 0
    private var chunkSize = initialChunkSize
    private var streams: [UInt32: ChunkStream] = [:]
    /// The bytes so far of an incomplete header.
    private var head: [UInt8] = []
    /// At most four bytes that were read as part of a header and turned out to follow it.
    private var returned: [UInt8] = []
    private var chunk: Chunk?
    /// Bytes of incomplete messages.
    private var kept = 0

    /// - Parameter messageLimit: in bytes; longer messages are refused.
    package init(messageLimit: Int) {
        self.messageLimit = messageLimit
    }

    /// Reads the next bytes of the stream.
    /// - Parameter visit: receives each complete message; chunk sizes and aborts are handled here.
    /// - Throws: `.invalid` for a malformed or too long message; the connection must then end.
    package mutating func read(
        _ bytes: Span<UInt8>, _ visit: (RTMPMessage) -> Void
    ) throws(WireError) {
        var offset = 0
        while let message = try next(bytes, from: &offset) { visit(message) }
    }

    /// Reads up to the end of the next message, so that a caller can change the limit before it reads on.
    /// - Parameter offset: where to begin; afterwards the end of the message, or of `bytes` if there is none.
    /// - Returns: nil if no message is complete.
    /// - Throws: as `read`.
    package mutating func next(
        _ bytes: Span<UInt8>, from offset: inout Int
    ) throws(WireError) -> RTMPMessage? {
        var message: RTMPMessage?
        while message == nil {
            guard returned.isEmpty else {
                let again = returned
                returned = []
                var place = 0
                try step(again.span, from: &place) { message = $0 }
                returned += again[place...]
                continue
            }
            guard offset < bytes.count else { break }
            try step(bytes, from: &offset) { message = $0 }
        }
        return message
    }

    /// Reads the rest of a chunk, or the next byte of a header.
    /// - Parameter offset: below the length of `bytes`.
    private mutating func step(
        _ bytes: Span<UInt8>, from offset: inout Int, _ visit: (RTMPMessage) -> Void
    ) throws(WireError) {
        guard var chunk else {
            head.append(try bytes.uint8(at: offset))
            offset += 1
            guard let header = try Header(head.span, streams) else { return }
            returned = Array(head[header.length...])
            head.removeAll(keepingCapacity: true)
            return try begin(header, visit)
        }
        let count = min(chunk.rest, bytes.count - offset)
        try append(bytes, offset..<(offset + count), to: chunk.id)
        offset += count
        chunk.rest -= count
        self.chunk = chunk.rest > 0 ? chunk : nil
        if chunk.rest == 0 { try complete(chunk.id, visit) }
    }

    // MARK: Headers

    /// The fields of a chunk header that are present.
    private struct Header {
        let id: UInt32
        /// 0 for all fields, 3 for none.
        let format: UInt8
        /// In bytes; those behind it belong to what follows.
        let length: Int
        /// The field on the wire: absolute in format 0, a difference in 1 and 2; nil in format 3.
        var time: UInt32?
        var messageLength: Int?
        var kind: UInt8?
        var stream: UInt32?
        var isExtended = false

        /// Parses a header; nil while it is incomplete.
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
            if format == 3, isExtended, let known, known.payload != nil {
                guard let isRepeated = try Self.isRepeated(known, in: bytes, at: basic) else { return nil }
                isExtended = isRepeated
            }
            if isExtended {
                guard bytes.count >= basic + fields + 4 else { return nil }
                let extended = try bytes.uint32(at: basic + fields)
                if format < 3 { time = extended }
            }
            length = basic + fields + (isExtended ? 4 : 0)
            guard format < 2 else { return }
            messageLength = try Int(bytes.uint24(at: basic + 3))
            kind = try bytes.uint8(at: basic + 6)
            // The only little-endian number (§5.3.1.2.5).
            if format == 0 { stream = try bytes.uint32(at: basic + 7).byteSwapped }
        }

        /// Whether a chunk within a message repeats the extended timestamp, as it should (§5.3.1.3).
        ///
        /// Old encoders leave it out, and begin to need it after 4 hours and 40 minutes: what follows their header is
        /// the payload. Like other servers, this tells the two apart by the value, which is a time or a difference.
        /// - Returns: nil while there are too few bytes to tell.
        private static func isRepeated(
            _ known: ChunkStream, in bytes: Span<UInt8>, at offset: Int
        ) throws(WireError) -> Bool? {
            let count = min(bytes.count - offset, 4)
            var isPossible = false
            for value in [known.step, known.timestamp] {
                var isEqual = true
                for index in 0..<count {
                    let expected = UInt8(truncatingIfNeeded: value >> UInt32(24 - 8 * index))
                    if try bytes.uint8(at: offset + index) != expected { isEqual = false }
                }
                if isEqual { isPossible = true }
            }
            guard isPossible else { return false }
            return count < 4 ? nil : true
        }
    }

    /// Begins or continues a message with a chunk.
    private mutating func begin(_ header: Header, _ visit: (RTMPMessage) -> Void) throws(WireError) {
        var known = streams[header.id] ?? ChunkStream()
        if known.payload == nil {
            if let length = header.messageLength { known.length = length }
            if let kind = header.kind { known.kind = kind }
            if let stream = header.stream { known.stream = stream }
            known.isExtended = header.isExtended
            // After format 0, the difference of format 3 is that timestamp (§5.3.1.2.4).
            if let time = header.time { known.step = time }
            known.timestamp = header.format == 0 ? known.step : known.timestamp &+ known.step
            guard known.length <= messageLimit else { throw .invalid(.rtmpMessageLength) }
            known.payload = []
        } else if header.format < 3 {
            // Only an abort may discard an incomplete message.
            throw .invalid(.rtmpChunk)
        }
        guard streams[header.id] != nil || streams.count < Self.streamLimit else {
            throw .invalid(.rtmpChunkStreams)
        }
        streams[header.id] = known
        let missing = known.length - (known.payload?.count ?? 0)
        guard missing > 0 else { return try complete(header.id, visit) }
        if chunkSize < min(missing, Self.shortChunk) { shortChunkCount &+= 1 }
        chunk = Chunk(id: header.id, rest: min(missing, chunkSize))
    }

    // MARK: Payloads

    private mutating func append(
        _ bytes: Span<UInt8>, _ range: Range<Int>, to id: UInt32
    ) throws(WireError) {
        kept += range.count
        guard kept <= messageLimit + messageLimit / 2 else { throw .invalid(.rtmpMessageLength) }
        // Moved out, so that appending does not copy it.
        guard var payload = streams[id]?.payload.take() else { return }
        // Capacity doubles as needed: chunks may be as short as one byte.
        payload += try bytes.bytes(range)
        streams[id]?.payload = payload
    }

    /// Passes a message on if it is complete.
    private mutating func complete(_ id: UInt32, _ visit: (RTMPMessage) -> Void) throws(WireError) {
        guard let known = streams[id], let payload = known.payload, payload.count >= known.length else {
            return
        }
        streams[id]?.payload = nil
        kept -= payload.count
        messageCount &+= 1
        let message = RTMPMessage(
            RTMPMessage.Kind(rawValue: known.kind), timestamp: known.timestamp, stream: known.stream,
            payload: payload)
        switch message.kind {
        case .setChunkSize:
            let size = try payload.span.uint32(at: 0)
            // A size of 0, or with the highest bit, is invalid (§5.4.1); the message limit bounds the rest.
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
    /// A header that omits values never given, or begins a message within another.
    package static var rtmpChunk: Self { .init("rtmp.chunk") }
    /// More chunk streams than the limit.
    package static var rtmpChunkStreams: Self { .init("rtmp.chunkStreams") }
    /// An invalid chunk size.
    package static var rtmpChunkSize: Self { .init("rtmp.chunkSize") }
    /// A message, or all incomplete ones together, exceed the limit.
    package static var rtmpMessageLength: Self { .init("rtmp.messageLength") }
}
