import Base
import Wire

/// The server's end of one connection of a publisher by RTMP, from the handshake to the goodbye.
///
/// Takes bytes and the time, and says what to send, who wants to publish, and what of media came; it owns no socket and
/// knows no stream. One connection publishes one stream, once.
/// - Source: Adobe, RTMP 1.0 (2012), §5.2 (handshake), §5.4 (control), §7.2 (commands).
package struct RTMPSession: Sendable {
    /// What is to be done with what came, in order.
    package enum Effect: Sendable {
        case send([UInt8])
        /// Somebody wants to publish: to be answered by `accept` or `end`.
        case publish(key: Secret<String>)
        /// What the encoder says of itself; empty where it is not understood.
        case metadata([AMF0Value.Member])
        case audio([UInt8], timestamp: UInt32)
        case video([UInt8], timestamp: UInt32)
        /// Close the connection, once what was to be sent has left.
        case finish(IngestEnd)
    }

    private enum Phase: Equatable {
        /// Until C0 and C1 are there, and then until C2 is.
        case hello
        case echo
        /// Commands, until one says what to publish.
        case commands
        /// Whether it may publish is being found out; media that comes all the same is dropped.
        case asked
        case publishing
        case over
    }

    /// The only application.
    package static let application = "live"
    /// How long it may take until it publishes.
    package static let joinLimit = IngestTimeouts.join
    /// Nothing may come for so long while it publishes.
    package static let silenceLimit = IngestTimeouts.silence
    /// It is asked whether it is there after so much silence.
    private static let pingAfter = Duration.seconds(5)
    /// Messages before it publishes; encoders send some ten.
    private static let commandLimit = 64
    /// Before it publishes, in bytes.
    private static let commandLength = 64 << 10
    /// The same afterwards: a key frame of the best picture that anybody sends live.
    private static let mediaLength = 4 << 20
    /// What may be under way unacknowledged, in bytes.
    private static let window: UInt32 = 2_500_000
    private static let chunkSize: UInt32 = 4_096
    private static let stream: UInt32 = 1

    private var phase = Phase.hello
    /// Of the handshake.
    private var collected: [UInt8] = []
    private let random: [UInt8]
    /// Whether there is a transcoder.
    private let isDecoding: Bool
    private var reader = RTMPChunkReader(messageLimit: commandLength)
    private var writer = RTMPChunkWriter()
    private var output: [UInt8] = []
    private var effects: [Effect] = []
    private var isConnected = false
    private var commands = 0
    private var publishTransaction = 0.0
    private let began: MonotonicTime
    private var lastReceived: MonotonicTime
    private var lastPing: MonotonicTime?
    /// Modulo 2^32, as acknowledgements count.
    private var received: UInt32 = 0
    private var acknowledged: UInt32 = 0
    private var peerWindow = window

    /// - Parameters:
    ///   - random: at least `RTMPHandshake.randomLength` bytes.
    ///   - isDecoding: whether there is a transcoder, by which more codecs are taken.
    package init(random: [UInt8], isDecoding: Bool = true, at now: MonotonicTime) {
        self.random = random
        self.isDecoding = isDecoding
        began = now
        lastReceived = now
    }

    /// Whether nothing is understood or sent any more.
    package var isOver: Bool { phase == .over }
    /// Whether media is taken.
    package var isPublishing: Bool { phase == .publishing }

    // MARK: Bytes

    /// Takes bytes of the connection in.
    package mutating func receive(_ bytes: Span<UInt8>, at now: MonotonicTime) -> [Effect] {
        guard phase != .over, !bytes.isEmpty else { return [] }
        lastReceived = now
        lastPing = nil
        received &+= UInt32(truncatingIfNeeded: bytes.count)
        do throws(WireError) {
            var rest = 0
            while rest < bytes.count, phase == .hello || phase == .echo { try shake(bytes, from: &rest) }
            if rest < bytes.count { try readChunks(bytes.extracting(rest..<bytes.count)) }
        } catch {
            finish(.malformed("\(error)"))
        }
        acknowledge()
        return takeEffects()
    }

    /// Takes as much of the handshake in as there is.
    private mutating func shake(_ bytes: Span<UInt8>, from offset: inout Int) throws(WireError) {
        let wanted = phase == .hello ? RTMPHandshake.helloLength : RTMPHandshake.blockLength
        let count = min(wanted - collected.count, bytes.count - offset)
        collected += try bytes.bytes(offset..<(offset + count))
        offset += count
        guard collected.count == wanted else {
            // What is no RTMP is known by its first byte.
            if phase == .hello, collected.first != 3 { throw .invalid(.rtmpVersion) }
            return
        }
        if phase == .hello {
            output += try RTMPHandshake.answer(to: collected.span, random: random)
            phase = .echo
        } else {
            // What it repeats of ours proves nothing: encoders are known to fill it with anything.
            phase = .commands
        }
        collected = []
    }

    private mutating func readChunks(_ bytes: Span<UInt8>) throws(WireError) {
        var messages: [RTMPMessage] = []
        // What came before a fault was meant.
        defer { for message in messages where phase != .over { receive(message) } }
        try reader.read(bytes) { messages.append($0) }
    }

    private mutating func acknowledge() {
        guard phase != .hello, phase != .echo, received &- acknowledged >= peerWindow / 2 else { return }
        acknowledged = received
        write(RTMPMessage(.acknowledgement, number: received))
    }

    // MARK: Messages

    private mutating func receive(_ message: RTMPMessage) {
        switch message.kind {
        case .audio where phase == .publishing:
            effects.append(.audio(message.payload, timestamp: message.timestamp))
        case .video where phase == .publishing:
            effects.append(.video(message.payload, timestamp: message.timestamp))
        case .audio, .video: break
        case .data, .dataAMF3: receiveData(message)
        case .command, .commandAMF3: receiveCommand(message)
        case .windowSize:
            guard let size = try? message.payload.span.uint32(at: 0) else { return }
            peerWindow = max(size, 4_096)
        case .userControl:
            guard (try? message.payload.span.uint16(at: 0)) == RTMPUserControl.pingRequest.rawValue,
                let time = try? message.payload.span.uint32(at: 2)
            else { return }
            write(RTMPMessage(.pingResponse, value: time))
        default: break
        }
    }

    private mutating func receiveData(_ message: RTMPMessage) {
        guard phase == .publishing else { return }
        let start = message.kind == .dataAMF3 ? min(1, message.payload.count) : 0
        let bytes = message.payload.span
        guard let values = try? AMF0Value.sequence(parsing: bytes.extracting(start..<bytes.count)) else {
            return effects.append(.metadata([]))
        }
        let named = values.first?.text == "@setDataFrame" ? values.dropFirst() : values[...]
        guard named.first?.text == "onMetaData", case .object(let members)? = named.dropFirst().first else {
            return
        }
        effects.append(.metadata(members))
    }

    private mutating func receiveCommand(_ message: RTMPMessage) {
        commands += 1
        guard phase == .publishing || commands <= Self.commandLimit else {
            return finish(.malformed("More than \(Self.commandLimit) commands before publishing."))
        }
        guard
            let command = try? RTMPCommand(
                parsing: message.payload.span, isAMF3: message.kind == .commandAMF3)
        else { return finish(.malformed("A command that makes no sense.")) }
        switch command.name {
        case "connect": connect(command)
        case "createStream": answer(command, [.number(Double(Self.stream))])
        case "releaseStream", "_checkbw", "getStreamLength": answer(command, [])
        case "FCPublish":
            answer(command, [])
            write(
                RTMPCommand(
                    "onFCPublish", [Self.status("NetStream.Publish.Start", isError: false, "Go on.")]
                ).message())
        case "publish": publish(command)
        case "FCUnpublish", "deleteStream", "closeStream":
            if phase == .publishing || phase == .asked { finish(.byPublisher) }
        case "play", "play2":
            finish(.refused("Nothing is played by RTMP here: watch in a browser, or by WHEP."))
        default: break
        }
    }

    private mutating func connect(_ command: RTMPCommand) {
        guard phase == .commands, !isConnected else {
            return finish(.malformed("A second connect command."))
        }
        let name = command.object[name: "app"]?.text ?? ""
        guard name.split(separator: "/").first.map(String.init) == Self.application else {
            reject(command, .unknownApplication)
            return finish(.unknownApplication)
        }
        isConnected = true
        write(RTMPMessage(.windowSize, number: Self.window))
        // The limit is a dynamic one, as servers usually have it (§5.4.5).
        var bandwidth = RTMPMessage(.peerBandwidth, number: Self.window)
        bandwidth.payload.append(2)
        write(bandwidth)
        writer.setChunkSize(Self.chunkSize, in: &output)
        let properties = AMF0Value.object([
            .init("fmsVer", .string("FMS/3,0,1,123")), .init("capabilities", .number(31)),
            // What may come with a FourCC (Enhanced RTMP v1, "Enhancing NetConnection connect Command").
            .init(
                "fourCcList",
                .array(IngestMedia.fourCCs(isDecoding: isDecoding).map { .string($0) })),
        ])
        let information = AMF0Value.object([
            .init("level", .string("status")), .init("code", .string("NetConnection.Connect.Success")),
            .init("description", .string("Connected.")), .init("objectEncoding", .number(0)),
        ])
        write(
            RTMPCommand("_result", transaction: command.transaction, object: properties, [information])
                .message())
    }

    private mutating func publish(_ command: RTMPCommand) {
        guard phase == .commands, isConnected else {
            return finish(.malformed("A publish command without a connection, or a second one."))
        }
        publishTransaction = command.transaction
        phase = .asked
        effects.append(.publish(key: Secret(command.arguments.first?.text ?? "")))
    }

    // MARK: Answers

    /// It may publish.
    package mutating func accept(at now: MonotonicTime) -> [Effect] {
        guard phase == .asked else { return [] }
        phase = .publishing
        lastReceived = now
        reader.messageLimit = Self.mediaLength
        write(RTMPMessage(.streamBegin, value: Self.stream))
        writeStatus("NetStream.Publish.Start", isError: false, "Publishing.")
        return takeEffects()
    }

    /// It may not, or not any longer: its client is told why, and the connection ends.
    package mutating func end(because reason: IngestEnd) -> [Effect] {
        finish(reason)
        return takeEffects()
    }

    private mutating func finish(_ reason: IngestEnd) {
        guard phase != .over else { return }
        let code: String? =
            switch reason {
            case .unknownStream, .badKey, .refused, .overloaded: "NetStream.Publish.BadName"
            case .unsupported: "NetStream.Publish.Rejected"
            case .stalled: "NetStream.Publish.Idle"
            case .ended: "NetStream.Unpublish.Success"
            case .malformed, .timedOut, .unknownApplication, .byPublisher: nil
            }
        if let code, isConnected { writeStatus(code, isError: true, reason.detail) }
        phase = .over
        effects.append(.finish(reason))
    }

    private mutating func reject(_ command: RTMPCommand, _ reason: IngestEnd) {
        let information = Self.status("NetConnection.Connect.Rejected", isError: true, reason.detail)
        write(RTMPCommand("_error", transaction: command.transaction, [information]).message())
    }

    private mutating func answer(_ command: RTMPCommand, _ values: [AMF0Value]) {
        guard phase != .over, command.transaction != 0 else { return }
        write(RTMPCommand("_result", transaction: command.transaction, values).message())
    }

    private mutating func writeStatus(_ code: String, isError: Bool, _ text: String) {
        write(RTMPCommand("onStatus", [Self.status(code, isError: isError, text)]).message(on: Self.stream))
    }

    private static func status(_ code: String, isError: Bool, _ text: String) -> AMF0Value {
        .object([
            .init("level", .string(isError ? "error" : "status")), .init("code", .string(code)),
            .init("description", .string(text)),
        ])
    }

    private mutating func write(_ message: RTMPMessage) { writer.append(message, to: &output) }

    private mutating func takeEffects() -> [Effect] {
        defer {
            effects = []
            output = []
        }
        // What ends the connection comes last.
        return (output.isEmpty ? [] : [.send(output)]) + effects
    }

    // MARK: Time

    /// When `advance` has something to do.
    package var deadline: MonotonicTime? {
        switch phase {
        case .hello, .echo, .commands: began + Self.joinLimit
        case .asked, .over: nil
        case .publishing: lastReceived + (lastPing == nil ? Self.pingAfter : Self.silenceLimit)
        }
    }

    /// Does what is due: pings, and an end to those of whom nothing comes.
    package mutating func advance(to now: MonotonicTime) -> [Effect] {
        switch phase {
        case .hello, .echo, .commands:
            if now >= began + Self.joinLimit { finish(.timedOut) }
        case .publishing:
            if now >= lastReceived + Self.silenceLimit {
                finish(.stalled)
            } else if lastPing == nil, now >= lastReceived + Self.pingAfter {
                lastPing = now
                let seconds = (now - began).components.seconds
                write(RTMPMessage(.pingRequest, value: UInt32(truncatingIfNeeded: seconds)))
            }
        case .asked, .over: break
        }
        return takeEffects()
    }
}
