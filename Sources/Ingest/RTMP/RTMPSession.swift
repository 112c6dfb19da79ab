import Base
import Wire

/// The server side of one publisher's RTMP connection, from the handshake to the end of the stream.
///
/// A sans-IO machine: it is given bytes and the time, and returns what to send, who wants to publish, and the media.
/// It owns no socket and does not know streams. One connection publishes one stream, once.
/// - Source: Adobe, RTMP 1.0 (2012), §5.2 (handshake), §5.4 (control), §7.2 (commands).
package struct RTMPSession: Sendable {
    /// What the caller has to do, in order.
    package enum Effect: Sendable {
        /// Send these bytes.
        case send([UInt8])
        /// The client requests to publish; answer with `accept` or `end`.
        case publish(key: Secret<String>)
        /// The encoder's metadata; empty if it could not be parsed.
        case metadata([AMF0Value.Member])
        /// The body of an audio message; the time stamp is in milliseconds.
        case audio([UInt8], timestamp: UInt32)
        /// The body of a video message; the time stamp is in milliseconds.
        case video([UInt8], timestamp: UInt32)
        /// Close the connection once everything before this effect has been sent.
        case finish(IngestEnd)
    }

    /// How far the connection has come.
    private enum Phase: Equatable {
        /// Until C0 and C1 have arrived.
        case hello
        /// Until C2 has arrived.
        case echo
        /// Receives commands, until one requests to publish.
        case commands
        /// Waits for `accept` or `end`; media that arrives meanwhile is dropped.
        case asked
        /// Media is accepted.
        case publishing
        /// Input is ignored and no output is made.
        case over
    }

    /// The only application name that is accepted.
    package static let application = "live"
    /// Time within which the client has to publish.
    package static let joinLimit = IngestTimeouts.join
    /// Longest silence of a publishing client.
    package static let silenceLimit = IngestTimeouts.silence
    /// Silence after which the server sends a ping.
    private static let pingAfter = Duration.seconds(5)
    /// Most commands before publishing; encoders send about ten.
    private static let commandLimit = 64
    /// Most messages and bytes before the request to publish; encoders send about twenty messages in a few kilobytes.
    private static let openingMessages = 512
    private static let openingLength = 128 << 10
    /// Most messages and short chunks in a second from then on; encoders send some hundred messages.
    private static let messagesPerSecond = 10_000
    /// Longest message before the request to publish, in bytes.
    private static let commandLength = 64 << 10
    /// Longest message from then on, in bytes: enough for a key frame at the highest quality in live use.
    private static let mediaLength = 4 << 20
    /// Most messages kept between the request to publish and its answer, which together are no longer than one of them.
    private static let earlyLimit = 256
    /// Bytes that may be unacknowledged, announced to the client as its window.
    private static let window: UInt32 = 2_500_000
    /// Size of the chunks that the server sends, in bytes, in place of the initial 128 (§5.4.1).
    private static let chunkSize: UInt32 = 4_096
    /// The message stream ID for the only stream of a connection.
    private static let stream: UInt32 = 1

    private var phase = Phase.hello
    /// Bytes of the handshake received so far; empty afterwards.
    private var collected: [UInt8] = []
    /// Random bytes for the handshake.
    private let random: [UInt8]
    /// Whether there is a transcoder.
    private let isDecoding: Bool
    private var reader = RTMPChunkReader(messageLimit: commandLength)
    private var writer = RTMPChunkWriter()
    /// Bytes to send, returned with the next effects.
    private var output: [UInt8] = []
    private var effects: [Effect] = []
    /// Whether `connect` was accepted.
    private var isConnected = false
    /// Commands received so far.
    private var commands = 0
    /// Bytes received between the handshake and the request to publish.
    private var openingBytes = 0
    /// When the present second of `messagesPerSecond` began, and the number of messages and short chunks before.
    private var second: (began: MonotonicTime, count: Int)?
    /// The first media that came before the answer, because codecs' configurations are sent only once.
    private var early: [RTMPMessage] = []
    private let began: MonotonicTime
    private var lastReceived: MonotonicTime
    /// When the unanswered ping was sent; nil if anything was received since.
    private var lastPing: MonotonicTime?
    /// Bytes received and bytes acknowledged, modulo 2^32 as in acknowledgements (§5.4.3).
    private var received: UInt32 = 0
    private var acknowledged: UInt32 = 0
    /// The client's acknowledgement window in bytes; the server's own until the client announces one.
    private var peerWindow = window

    /// - Parameters:
    ///   - random: at least `RTMPHandshake.randomLength` bytes.
    ///   - isDecoding: whether there is a transcoder, with which more codecs are accepted.
    package init(random: [UInt8], isDecoding: Bool = true, at now: MonotonicTime) {
        self.random = random
        self.isDecoding = isDecoding
        began = now
        lastReceived = now
    }

    /// Whether the connection is finished.
    package var isOver: Bool { phase == .over }
    /// Whether media is accepted.
    package var isPublishing: Bool { phase == .publishing }

    // MARK: Bytes

    /// Processes bytes received from the client.
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
            finish(.malformed("The encoder \(error.rtmpFault)."))
        }
        acknowledge()
        return takeEffects()
    }

    /// Consumes bytes of the handshake, up to the end of its current part.
    private mutating func shake(_ bytes: Span<UInt8>, from offset: inout Int) throws(WireError) {
        let wanted = phase == .hello ? RTMPHandshake.helloLength : RTMPHandshake.blockLength
        let count = min(wanted - collected.count, bytes.count - offset)
        collected += try bytes.bytes(offset..<(offset + count))
        offset += count
        guard collected.count == wanted else {
            // The first byte is the version. A client of another protocol fails here and not after `joinLimit`.
            if phase == .hello, collected.first != 3 { throw .invalid(.rtmpVersion) }
            return
        }
        if phase == .hello {
            output += try RTMPHandshake.answer(to: collected.span, random: random)
            phase = .echo
        } else {
            // The content of C2 is not checked: some encoders do not echo S1.
            phase = .commands
        }
        collected = []
    }

    private mutating func readChunks(_ bytes: Span<UInt8>) throws(WireError) {
        // One after the other: a request to publish permits longer messages behind it.
        var offset = 0
        while phase != .over {
            let start = offset
            let message = try reader.next(bytes, from: &offset)
            if phase == .commands { openingBytes += offset - start }
            limitMessages()
            guard phase != .over, let message else { return }
            receive(message)
        }
    }

    /// Ends the connection of a client that sends many more messages than encoders do.
    ///
    /// A message or a chunk may take a single byte, and costs the port's one thread nearly as much as a long one: with
    /// enough of them no other publisher would be heard.
    private mutating func limitMessages() {
        guard phase != .commands else {
            guard reader.messageCount > Self.openingMessages || openingBytes > Self.openingLength
            else { return }
            return finish(.malformed("Too many messages arrived before publishing."))
        }
        let count = reader.messageCount &+ reader.shortChunkCount
        guard let second, lastReceived < second.began + .seconds(1) else {
            self.second = (lastReceived, count)
            return
        }
        guard count - second.count > Self.messagesPerSecond else { return }
        finish(
            .malformed(
                "More than \(Self.messagesPerSecond) messages, or chunks of less than "
                    + "\(RTMPChunkReader.shortChunk) bytes, arrived in a second."))
    }

    /// Acknowledges received bytes after half a window, so that the client never has to stop and wait.
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
        case .audio where phase == .asked, .video where phase == .asked, .data where phase == .asked,
            .dataAMF3 where phase == .asked:
            keep(message)
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

    /// Keeps media for the answer, up to the limits.
    private mutating func keep(_ message: RTMPMessage) {
        let length = early.reduce(message.payload.count) { $0 + $1.payload.count }
        guard early.count < Self.earlyLimit, length <= Self.mediaLength else { return }
        early.append(message)
    }

    /// Extracts metadata from a data message; others are ignored.
    private mutating func receiveData(_ message: RTMPMessage) {
        guard phase == .publishing else { return }
        // AMF3 messages begin with one byte of format, followed by AMF0 values.
        let start = message.kind == .dataAMF3 ? min(1, message.payload.count) : 0
        let bytes = message.payload.span
        guard let values = try? AMF0Value.sequence(parsing: bytes.extracting(start..<bytes.count)) else {
            return effects.append(.metadata([]))
        }
        // `@setDataFrame` asks servers to store the metadata; the name of the data follows it.
        let named = values.first?.text == "@setDataFrame" ? values.dropFirst() : values[...]
        guard named.first?.text == "onMetaData", case .object(let members)? = named.dropFirst().first else {
            return
        }
        effects.append(.metadata(members))
    }

    /// Executes a command; unknown ones are ignored.
    private mutating func receiveCommand(_ message: RTMPMessage) {
        commands += 1
        guard phase == .publishing || commands <= Self.commandLimit else {
            return finish(.malformed("More than \(Self.commandLimit) commands arrived before publishing."))
        }
        guard
            let command = try? RTMPCommand(
                parsing: message.payload.span, isAMF3: message.kind == .commandAMF3)
        else { return finish(.malformed("A command is invalid.")) }
        switch command.name {
        case "connect": connect(command)
        case "createStream": answer(command, [.number(Double(Self.stream))])
        case "releaseStream", "_checkbw", "getStreamLength": answer(command, [])
        case "FCPublish":
            answer(command, [])
            write(
                RTMPCommand(
                    "onFCPublish", [Self.status("NetStream.Publish.Start", isError: false, "Ready.")]
                ).message())
        case "publish": publish(command)
        case "FCUnpublish", "deleteStream", "closeStream":
            if phase == .publishing || phase == .asked { finish(.byPublisher) }
        case "play", "play2":
            finish(.refused("Streams can't be played over RTMP. Watch in a browser or by WHEP."))
        default: break
        }
    }

    /// Answers `connect`, which names the application.
    private mutating func connect(_ command: RTMPCommand) {
        guard phase == .commands, !isConnected else {
            return finish(.malformed("A second connect command arrived."))
        }
        let name = command.object[name: "app"]?.text ?? ""
        // Encoders may append an instance name to the application.
        guard name.split(separator: "/").first.map(String.init) == Self.application else {
            reject(command, .unknownApplication)
            return finish(.unknownApplication)
        }
        isConnected = true
        write(RTMPMessage(.windowSize, number: Self.window))
        // Limit type 2 is dynamic, as usual for servers (§5.4.5).
        var bandwidth = RTMPMessage(.peerBandwidth, number: Self.window)
        bandwidth.payload.append(2)
        write(bandwidth)
        writer.setChunkSize(Self.chunkSize, in: &output)
        let properties = AMF0Value.object([
            .init("fmsVer", .string("FMS/3,0,1,123")), .init("capabilities", .number(31)),
            // FourCCs that are accepted (Enhanced RTMP v1, "Enhancing NetConnection connect Command").
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

    /// Reports the request to publish; the key stays secret until it has been checked.
    private mutating func publish(_ command: RTMPCommand) {
        guard phase == .commands, isConnected else {
            return finish(.malformed("A publish command arrived before connect, or a second time."))
        }
        phase = .asked
        // Clients need not wait for the answer before they send media.
        reader.messageLimit = Self.mediaLength
        effects.append(.publish(key: Secret(command.arguments.first?.text ?? "")))
    }

    // MARK: Answers

    /// Permits the client to publish; ignored unless it requested that.
    package mutating func accept(at now: MonotonicTime) -> [Effect] {
        guard phase == .asked else { return [] }
        phase = .publishing
        lastReceived = now
        write(RTMPMessage(.streamBegin, value: Self.stream))
        writeStatus("NetStream.Publish.Start", isError: false, "Publishing.")
        for message in early { receive(message) }
        early = []
        return takeEffects()
    }

    /// Ends the connection, and sends the reason to the client.
    package mutating func end(because reason: IngestEnd) -> [Effect] {
        finish(reason)
        return takeEffects()
    }

    /// Ends the connection; only the first reason counts.
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

    /// Refuses a command with an error.
    private mutating func reject(_ command: RTMPCommand, _ reason: IngestEnd) {
        let information = Self.status("NetConnection.Connect.Rejected", isError: true, reason.detail)
        write(RTMPCommand("_error", transaction: command.transaction, [information]).message())
    }

    /// Answers a command; transaction 0 expects no answer.
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
        // `finish` is the last effect, so output precedes it.
        return (output.isEmpty ? [] : [.send(output)]) + effects
    }

    // MARK: Time

    /// When `advance` has to be called; nil if there is nothing to wait for.
    package var deadline: MonotonicTime? {
        switch phase {
        case .hello, .echo, .commands: began + Self.joinLimit
        case .asked, .over: nil
        case .publishing: lastReceived + (lastPing == nil ? Self.pingAfter : Self.silenceLimit)
        }
    }

    /// Sends pings that are due, and ends the connection of a silent client.
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
