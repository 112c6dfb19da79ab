import Base
import Wire

/// The client's end of one connection to which a programme is published by RTMP, from the handshake to the goodbye.
///
/// Takes bytes, media and the time, and says what to send; it owns no socket. To a target that reads too slowly
/// pictures are left out up to the next key frame, never a part of one.
/// - Source: Adobe, RTMP 1.0 (2012), §5.2 (handshake), §5.4 (control), §7.2 (commands); Video File Format 10.1, annex E
///   (bodies of sound and pictures).
package struct RTMPPublisher: Sendable {
    package enum Phase: Equatable, Sendable {
        /// Until S0, S1 and S2 are there.
        case hello
        /// Until `connect` was answered, and then `createStream`.
        case connecting
        case creating
        /// Until the target says that it takes the stream.
        case asking
        case live
        /// Nothing is understood or sent any more; nil where it ended as it should.
        case over(RestreamFailure?)
    }

    /// How long it may take until the target takes the stream.
    package static let joinLimit = Duration.seconds(15)
    /// Of a message of the target, in bytes; servers send some hundred.
    private static let messageLimit = 64 << 10
    /// What a target may say beyond a share of what it is sent, in bytes: more is no answer.
    private static let chatterLimit: UInt64 = 1 << 20
    /// Bytes that wait for the target, from which on pictures are left out: four seconds of two megabits.
    package static let pictureLimit = 1 << 20
    /// Pictures come back, with a key frame, when no more than this waits.
    package static let resumeLimit = 256 << 10
    /// Room that sound has beyond the pictures.
    package static let soundLimit = pictureLimit + (128 << 10)
    private static let chunkSize: UInt32 = 4_096
    /// In characters, of what a target says.
    private static let wordsLimit = 200

    private enum Transaction {
        static let connect = 1.0
        static let releaseStream = 2.0
        static let announce = 3.0
        static let createStream = 4.0
        static let publish = 5.0
    }

    private let address: RestreamAddress
    private let key: Secret<String>
    private let began: MonotonicTime
    package private(set) var phase = Phase.hello
    /// Of the handshake.
    private var collected: [UInt8] = []
    private var reader = RTMPChunkReader(messageLimit: messageLimit)
    private var writer = RTMPChunkWriter()
    private var output: [UInt8] = []
    private var stream: UInt32 = 1
    private var received: UInt64 = 0
    private var acknowledged: UInt64 = 0
    private var sent: UInt64 = 0
    private var peerWindow: UInt64 = 2_500_000
    // Media.
    private var format: RestreamFormat?
    /// Whether the target was told of it.
    private var isFormatTold = false
    /// What is 0 for the target: the first picture; nil before it.
    private var zero: MonotonicTime?
    private var lastNumber: UInt64?
    private var lastTimestamp: UInt32 = 0
    /// Whether pictures are left out until a key frame comes.
    private var isSkipping = true
    /// Pictures that were left out because the target was too slow.
    package private(set) var dropped: UInt64 = 0

    /// - Parameter random: at least `RTMPHandshake.randomLength` bytes.
    package init(to address: RestreamAddress, key: Secret<String>, random: [UInt8], at now: MonotonicTime) {
        self.address = address
        self.key = key
        began = now
        output = RTMPHandshake.hello(random: random)
    }

    package var isOver: Bool { if case .over = phase { true } else { false } }

    /// What is to be sent since the last call.
    package mutating func takeOutput() -> [UInt8] {
        defer { output = [] }
        sent &+= UInt64(output.count)
        return output
    }

    // MARK: Bytes

    /// Takes bytes of the connection in.
    package mutating func receive(_ bytes: Span<UInt8>) {
        guard !isOver, !bytes.isEmpty else { return }
        received &+= UInt64(bytes.count)
        guard received <= Self.chatterLimit + sent / 4 else {
            return finish(.malformed("it sends more than a target has to say"))
        }
        do throws(WireError) {
            var start = 0
            if phase == .hello { start = try shake(bytes) }
            if start < bytes.count { try readChunks(bytes.extracting(start..<bytes.count)) }
        } catch {
            finish(.malformed("\(error)"))
        }
        acknowledge()
    }

    /// Takes as much of the handshake in as there is.
    /// - Returns: where the rest begins.
    private mutating func shake(_ bytes: Span<UInt8>) throws(WireError) -> Int {
        let count = min(RTMPHandshake.answerLength - collected.count, bytes.count)
        collected += try bytes.bytes(0..<count)
        guard collected.count == RTMPHandshake.answerLength else {
            // What is no RTMP is known by its first byte.
            if collected.first != 3 { throw .invalid(.rtmpVersion) }
            return count
        }
        output += try RTMPHandshake.echo(of: collected.span)
        collected = []
        phase = .connecting
        let properties = AMF0Value.object([
            .init("app", .string(address.application)), .init("type", .string("nonprivate")),
            .init("flashVer", .string("FMLE/3.0 (compatible; Rostrum)")),
            .init("tcUrl", .string(address.description)),
        ])
        write(RTMPCommand("connect", transaction: Transaction.connect, object: properties).message())
        return count
    }

    private mutating func readChunks(_ bytes: Span<UInt8>) throws(WireError) {
        var messages: [RTMPMessage] = []
        // What came before a fault was meant.
        defer { for message in messages where !isOver { receive(message) } }
        try reader.read(bytes) { messages.append($0) }
    }

    private mutating func acknowledge() {
        guard !isOver, phase != .hello, received - acknowledged >= peerWindow / 2 else { return }
        acknowledged = received
        // Modulo 2^32 (§5.4.3).
        write(RTMPMessage(.acknowledgement, number: UInt32(truncatingIfNeeded: received)))
    }

    // MARK: Messages

    private mutating func receive(_ message: RTMPMessage) {
        switch message.kind {
        case .command, .commandAMF3: receiveCommand(message)
        case .windowSize:
            guard let size = try? message.payload.span.uint32(at: 0) else { return }
            peerWindow = UInt64(max(size, 4_096))
        case .peerBandwidth:
            // To be answered by our own window (§5.4.5).
            guard let size = try? message.payload.span.uint32(at: 0) else { return }
            write(RTMPMessage(.windowSize, number: size))
        case .userControl:
            guard (try? message.payload.span.uint16(at: 0)) == RTMPUserControl.pingRequest.rawValue,
                let time = try? message.payload.span.uint32(at: 2)
            else { return }
            write(RTMPMessage(.pingResponse, value: time))
        default: break
        }
    }

    private mutating func receiveCommand(_ message: RTMPMessage) {
        // What some say beside the protocol, as ffmpeg its `onFCPublish` without a number, is passed over.
        guard
            let command = try? RTMPCommand(
                parsing: message.payload.span, isAMF3: message.kind == .commandAMF3)
        else { return }
        switch (command.name, command.transaction, phase) {
        case ("_result", Transaction.connect, .connecting): create()
        case ("_error", Transaction.connect, .connecting), ("_error", Transaction.createStream, .creating),
            ("_error", Transaction.publish, .asking):
            finish(.refused(words(of: command)))
        case ("_result", Transaction.createStream, .creating): publish(on: command.arguments.first?.number)
        case ("onStatus", _, .asking), ("onStatus", _, .live): receiveStatus(command)
        // Some do not answer `connect`, but say that they do not want it.
        case ("onStatus", _, _):
            if isError(command) { finish(.refused(words(of: command))) }
        case ("close", _, _): finish(.closed)
        default: break
        }
    }

    private mutating func receiveStatus(_ command: RTMPCommand) {
        let code = command.arguments.first?[name: "code"]?.text ?? ""
        if isError(command) {
            finish(.refused(words(of: command)))
        } else if code == "NetStream.Publish.Start", phase == .asking {
            phase = .live
        } else if code == "NetStream.Unpublish.Success" || code == "NetStream.Publish.Idle" {
            finish(.closed)
        }
    }

    private func isError(_ command: RTMPCommand) -> Bool {
        let information = command.arguments.first
        return information?[name: "level"]?.text == "error"
            || information?[name: "code"]?.text == "NetStream.Publish.BadName"
    }

    /// What the target says of itself, without the key, in one line.
    private func words(of command: RTMPCommand) -> String {
        let information = command.arguments.first ?? command.object
        let text = information[name: "description"]?.text ?? information[name: "code"]?.text ?? ""
        let line = text.replacing(key.exposed, with: "…").unicodeScalars.filter {
            switch $0.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .privateUse: false
            default: true
            }
        }
        return String(String(String.UnicodeScalarView(line)).prefix(Self.wordsLimit))
    }

    private mutating func create() {
        phase = .creating
        writer.setChunkSize(Self.chunkSize, in: &output)
        let name = AMF0Value.string(key.exposed)
        // What Flash's encoder says first, and some services wait for; others refuse it, which does no harm.
        write(RTMPCommand("releaseStream", transaction: Transaction.releaseStream, [name]).message())
        write(RTMPCommand("FCPublish", transaction: Transaction.announce, [name]).message())
        write(RTMPCommand("createStream", transaction: Transaction.createStream).message())
    }

    private mutating func publish(on number: Double?) {
        guard let stream = number.flatMap({ UInt32(exactly: $0) }) else {
            return finish(.malformed("a stream without a number"))
        }
        self.stream = stream
        phase = .asking
        write(
            RTMPCommand(
                "publish", transaction: Transaction.publish, [.string(key.exposed), .string("live")]
            ).message(on: stream))
    }

    private mutating func write(_ message: RTMPMessage) { writer.append(message, to: &output) }

    private mutating func finish(_ failure: RestreamFailure?) {
        guard !isOver else { return }
        phase = .over(failure)
    }

    // MARK: Media

    /// Sends what the encoder made, or leaves it out.
    /// - Parameter waiting: bytes that were taken from here, and that the target has not taken yet.
    package mutating func send(_ media: RestreamMedia, waiting: Int) {
        switch media {
        case .format(let new):
            format = new
            isFormatTold = false
            // Only a key frame makes sense after it.
            isSkipping = true
            lastNumber = nil
        case .sample(let sample):
            let follows = lastNumber.map { sample.number == $0 &+ 1 } ?? true
            lastNumber = sample.number
            // What got lost on the way here may have been a picture that others need.
            if !follows { isSkipping = true }
            guard phase == .live else { return }
            let waiting = waiting + output.count
            switch sample.kind {
            case .sound: sendSound(sample, waiting: waiting)
            case .keyFrame, .picture: sendPicture(sample, waiting: waiting)
            }
        }
    }

    private mutating func sendPicture(_ sample: RestreamSample, waiting: Int) {
        if isSkipping {
            guard sample.kind == .keyFrame, waiting <= Self.resumeLimit else {
                if zero != nil { dropped &+= 1 }
                return
            }
            isSkipping = false
        } else if waiting > Self.pictureLimit {
            isSkipping = true
            dropped &+= 1
            return
        }
        if zero == nil { zero = sample.time }
        if !isFormatTold { tellFormat() }
        let picture = AnnexBPicture(parsing: sample.bytes.span)
        guard isFormatTold, !picture.units.isEmpty else { return }
        let body = FLVVideoTag.h264(units: picture.units, isKeyFrame: sample.kind == .keyFrame)
        write(RTMPMessage(.video, timestamp: timestamp(of: sample), stream: stream, payload: body))
    }

    private mutating func sendSound(_ sample: RestreamSample, waiting: Int) {
        guard let zero, sample.time >= zero, isFormatTold, waiting <= Self.soundLimit else { return }
        let body = FLVAudioTag.aac(frame: sample.bytes)
        write(RTMPMessage(.audio, timestamp: timestamp(of: sample), stream: stream, payload: body))
    }

    private mutating func tellFormat() {
        guard let format else { return }
        let parameters = AnnexBPicture(parsing: format.pictureHeader.span)
        guard let record = parameters.configurationRecord else { return }
        isFormatTold = true
        let rate = format.framesPerSecond.map { AMF0Value.Member("framerate", .number(Double($0))) }
        let metadata = AMF0Value.object(
            [
                .init("width", .number(Double(format.width))),
                .init("height", .number(Double(format.height))),
                // H.264 and AAC (annex E.4.3.1, E.4.2.1).
                .init("videocodecid", .number(7)), .init("audiocodecid", .number(10)),
                .init("audiosamplerate", .number(48_000)), .init("audiosamplesize", .number(16)),
                .init("stereo", .boolean(true)), .init("encoder", .string("Rostrum")),
            ] + [rate].compactMap(\.self))
        var payload: [UInt8] = []
        for value in [AMF0Value.string("@setDataFrame"), .string("onMetaData"), metadata] {
            value.append(to: &payload)
        }
        let time = lastTimestamp
        write(RTMPMessage(.data, timestamp: time, stream: stream, payload: payload))
        let video = FLVVideoTag.h264(configuration: record)
        write(RTMPMessage(.video, timestamp: time, stream: stream, payload: video))
        let audio = FLVAudioTag.aac(configuration: format.soundConfiguration)
        write(RTMPMessage(.audio, timestamp: time, stream: stream, payload: audio))
    }

    /// Never goes back, whatever an encoder that begins anew says.
    private mutating func timestamp(of sample: RestreamSample) -> UInt32 {
        let milliseconds = sample.time.nanoseconds(since: zero ?? sample.time) / 1_000_000
        let timestamp = UInt32(truncatingIfNeeded: max(milliseconds, 0))
        // Sound and pictures are a little out of order; modulo 2^32 half of all is before.
        if timestamp &- lastTimestamp < 1 << 31 { lastTimestamp = timestamp }
        return timestamp
    }

    // MARK: Time and the end

    /// When `advance` has something to do.
    package var deadline: MonotonicTime? {
        switch phase {
        case .hello, .connecting, .creating, .asking: began + Self.joinLimit
        case .live, .over: nil
        }
    }

    /// Gives a target up that does not answer.
    package mutating func advance(to now: MonotonicTime) {
        if let deadline, now >= deadline { finish(.timedOut) }
    }

    /// Says goodbye: nothing more comes.
    package mutating func end() {
        if phase == .live || phase == .asking {
            write(RTMPCommand("FCUnpublish", transaction: 6, [.string(key.exposed)]).message())
            write(RTMPCommand("deleteStream", transaction: 7, [.number(Double(stream))]).message())
        }
        finish(nil)
    }
}
