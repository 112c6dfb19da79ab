import TestSupport
import Testing
import Wire

/// Makes values of AMF at random, within the reader's limits.
private struct AMFMaker {
    private var random: SeededGenerator
    /// Values that may still be made.
    private var rest = AMF0Value.countLimit

    init(seed: UInt64) {
        random = SeededGenerator(seed: seed)
    }

    mutating func sequence() -> [AMF0Value] {
        var values: [AMF0Value] = []
        for _ in 0..<number(0...10) where rest > 0 { values.append(value(depth: 0)) }
        return values
    }

    mutating func value(depth: Int) -> AMF0Value {
        rest -= 1
        let isSimple = depth >= AMF0Value.depthLimit || rest < 8
        switch number(0...(isSimple ? 5 : 7)) {
        case 0: return .number(Double(number(-1_000_000...1_000_000)) / 8)
        case 1: return .boolean(number(0...1) == 1)
        case 2: return .string(text())
        case 3: return .date(Double(number(0...1_000_000)))
        case 4: return .null
        case 5: return .undefined
        case 6:
            var members: [AMF0Value.Member] = []
            for _ in 0..<number(0...5) where rest > 0 {
                let name = text()
                members.append(.init(name, value(depth: depth + 1)))
            }
            return .object(members)
        default:
            var elements: [AMF0Value] = []
            for _ in 0..<number(0...5) where rest > 0 { elements.append(value(depth: depth + 1)) }
            return .array(elements)
        }
    }

    private mutating func number(_ range: ClosedRange<Int>) -> Int {
        .random(in: range, using: &random)
    }

    private mutating func text() -> String {
        let characters: [Character] = ["a", "Z", " ", "é", "🎥"]
        var text = ""
        for _ in 0..<number(0...12) { text.append(characters[number(0...4)]) }
        return text
    }
}

private func written(_ values: [AMF0Value]) -> [UInt8] {
    var bytes: [UInt8] = []
    for value in values { value.append(to: &bytes) }
    return bytes
}

@Suite struct `AMF made at random` {
    @Test(arguments: 0..<200 as Range<UInt64>) func `is read as it was written`(seed: UInt64) throws {
        var maker = AMFMaker(seed: seed)
        let values = maker.sequence()
        #expect(try AMF0Value.sequence(parsing: written(values).span) == values)
    }

    @Test(arguments: 0..<40 as Range<UInt64>) func `is refused where a value is cut off`(seed: UInt64) {
        var maker = AMFMaker(seed: seed)
        let value = maker.value(depth: 0)
        let whole = written([value])
        for length in 1..<max(whole.count, 2) where length < whole.count {
            #expect(throws: WireError.truncated) {
                try AMF0Value.sequence(parsing: Array(whole.prefix(length)).span)
            }
        }
    }

    @Test(arguments: 0..<100 as Range<UInt64>) func `makes the same commands`(seed: UInt64) throws {
        var maker = AMFMaker(seed: seed)
        let object = maker.value(depth: 0)
        let command = RTMPCommand("go", transaction: Double(seed), object: object, maker.sequence())
        let payload = command.message().payload
        #expect(try RTMPCommand(parsing: payload.span) == command)
    }
}

/// A sender that uses all of the chunk format: short headers, several chunk streams at a time, other chunk sizes,
/// long timestamps and aborts.
/// - Source: Adobe, RTMP 1.0 (2012), §5.3.1, §5.4.1, §5.4.2.
private struct ChunkSender {
    /// What the next header of a chunk stream may leave out, and what is still to be sent.
    private struct ChunkStream {
        var message = RTMPMessage(.data, payload: [])
        var step: UInt32 = 0
        /// What each header ends with; nil if times are short.
        var extended: UInt32?
        var sent = 0
        var isBusy = false
    }

    /// Ids that take one, two and three bytes.
    private static let ids: [UInt32] = [3, 4, 63, 64, 319, 320, 65_599]
    private static let kinds: [RTMPMessage.Kind] = [.audio, .video, .data, .command]
    /// Times and differences around what 24 and 32 bits can say.
    private static let times: [UInt32] = [0, 20, 0xFF_FFFE, 0xFF_FFFF, 0x100_0000, .max]

    private var random: SeededGenerator
    private var chunkSize = 128
    private var streams: [UInt32: ChunkStream] = [:]
    private(set) var bytes: [UInt8] = []
    /// In the order in which they became complete.
    private(set) var messages: [RTMPMessage] = []

    init(seed: UInt64) {
        random = SeededGenerator(seed: seed)
        for _ in 0..<200 { step() }
        for id in Self.ids {
            while streams[id]?.isBusy == true { sendChunk(id) }
        }
    }

    private mutating func number(_ range: ClosedRange<Int>) -> Int {
        .random(in: range, using: &random)
    }

    private mutating func step() {
        let id = Self.ids[number(0...(Self.ids.count - 1))]
        switch number(0...20) {
        case 0:
            let size = number(16...600)
            control(.setChunkSize, UInt32(size))
            chunkSize = size
        case 1:
            control(.abort, id)
            streams[id]?.isBusy = false
        default:
            if streams[id]?.isBusy == true { sendChunk(id) } else { begin(id) }
        }
    }

    private mutating func control(_ kind: RTMPMessage.Kind, _ value: UInt32) {
        bytes += [2, 0, 0, 0, 0, 0, 4, kind.rawValue, 0, 0, 0, 0]
        bytes.append(bigEndian: value)
    }

    private mutating func begin(_ id: UInt32) {
        let format = streams[id] == nil ? 0 : number(0...3)
        var stream = streams[id] ?? ChunkStream()
        var length = stream.message.payload.count
        if format < 3 { stream.step = Self.times[number(0...(Self.times.count - 1))] }
        stream.message.timestamp = format == 0 ? stream.step : stream.message.timestamp &+ stream.step
        if format < 2 {
            length = number(0...3) == 0 ? 0 : number(1...700)
            stream.message.kind = Self.kinds[number(0...(Self.kinds.count - 1))]
        }
        if format == 0 { stream.message.stream = UInt32(number(0...1_000_000)) }
        stream.message.payload = (0..<length).map { _ in UInt8.random(in: 0...255, using: &random) }
        if format < 3 { stream.extended = stream.step >= 0xFF_FFFF ? stream.step : nil }
        appendBasic(UInt8(format), id)
        if format < 3 { append(uint24: min(stream.step, 0xFF_FFFF)) }
        if format < 2 {
            append(uint24: UInt32(length))
            bytes.append(stream.message.kind.rawValue)
        }
        if format == 0 { bytes.append(bigEndian: stream.message.stream.byteSwapped) }
        if let extended = stream.extended { bytes.append(bigEndian: extended) }
        stream.sent = 0
        stream.isBusy = true
        streams[id] = stream
        sendPayload(id)
    }

    /// Sends a further chunk of a message.
    private mutating func sendChunk(_ id: UInt32) {
        appendBasic(3, id)
        if let extended = streams[id]?.extended { bytes.append(bigEndian: extended) }
        sendPayload(id)
    }

    private mutating func sendPayload(_ id: UInt32) {
        guard var stream = streams[id] else { return }
        let payload = stream.message.payload
        let end = min(stream.sent + chunkSize, payload.count)
        bytes += payload[stream.sent..<end]
        stream.sent = end
        if end == payload.count {
            stream.isBusy = false
            messages.append(stream.message)
        }
        streams[id] = stream
    }

    private mutating func appendBasic(_ format: UInt8, _ id: UInt32) {
        switch id {
        case ..<64: bytes.append(format << 6 | UInt8(id))
        case ..<320: bytes += [format << 6, UInt8(id - 64)]
        default: bytes += [format << 6 | 1, UInt8((id - 64) & 0xFF), UInt8((id - 64) >> 8)]
        }
    }

    private mutating func append(uint24 value: UInt32) {
        bytes.append(UInt8(value >> 16))
        bytes.append(bigEndian: UInt16(truncatingIfNeeded: value))
    }
}

@Suite struct `RTMP messages of a sender that uses the whole format` {
    @Test(arguments: 0..<60 as Range<UInt64>)
    func `are read as they became complete, however the stream is cut`(seed: UInt64) throws {
        let sender = ChunkSender(seed: seed)
        var random = SeededGenerator(seed: seed)
        var reader = RTMPChunkReader(messageLimit: 5_000)
        var found: [RTMPMessage] = []
        var rest = sender.bytes[...]
        while !rest.isEmpty {
            let piece = Array(rest.prefix(Int.random(in: 1...400, using: &random)))
            rest = rest.dropFirst(piece.count)
            try reader.read(piece.span) { found.append($0) }
        }
        #expect(found == sender.messages)
        #expect(found.count > 10)
    }
}
