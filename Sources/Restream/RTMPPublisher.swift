import Base
import Wire

/// The client side of one RTMP connection that publishes a programme, from the handshake to the end of the stream.
///
/// A sans-IO machine: the caller passes in received bytes, media and the time, and sends what `takeOutput` returns.
/// When a target reads too slowly, whole pictures are dropped up to the next key frame, never a part of a picture.
/// - Source: Adobe, RTMP 1.0 (2012), §5.2 (handshake), §5.4 (control), §7.2 (commands); Video File Format 10.1, annex
///   E (bodies of sound and pictures).
package struct RTMPPublisher: Sendable {
    /// How far the connection has come; each phase waits for one answer of the target.
    package enum Phase: Equatable, Sendable {
        /// Until S0, S1 and S2 have arrived.
        case hello
        /// Until the target answers `connect`.
        case connecting
        /// Until the target answers `createStream`.
        case creating
        /// Until the target accepts the `publish` command.
        case asking
        /// The target accepts media.
        case live
        /// The connection is finished: input is ignored and no output is made. Nil after a regular end.
        case over(RestreamFailure?)
    }

    /// Time from the start of the handshake within which the target has to accept the stream.
    package static let joinLimit = Duration.seconds(15)
    /// Longest message accepted from the target, in bytes; real servers send a few hundred.
    private static let messageLimit = 64 << 10
    /// Bytes that a target may send in addition to a quarter of what it is sent; a target that sends more is
    /// malformed.
    private static let chatterLimit: UInt64 = 1 << 20
    /// Backlog in bytes above which pictures are dropped: four seconds at two megabits per second.
    package static let pictureLimit = 1 << 20
    /// Pictures resume, with a key frame, once the backlog is no larger than this, in bytes.
    ///
    /// Well below `pictureLimit`, so that a slow target does not alternate between the two states.
    package static let resumeLimit = 256 << 10
    /// Backlog in bytes above which sound is dropped as well.
    ///
    /// Higher than `pictureLimit`: sound is small, so it continues while pictures are dropped.
    package static let soundLimit = pictureLimit + (128 << 10)
    /// In bytes, announced to the target in place of the protocol's initial 128 (§5.4.1).
    private static let chunkSize: UInt32 = 4_096
    /// Longest text of a target that is shown to the host, in characters.
    private static let wordsLimit = 200

    /// Transaction numbers of the commands, by which `_result` and `_error` are matched to them.
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
    /// Bytes of the handshake received so far; empty afterwards.
    private var collected: [UInt8] = []
    private var reader = RTMPChunkReader(messageLimit: messageLimit)
    private var writer = RTMPChunkWriter()
    private var output: [UInt8] = []
    /// Message stream ID from the answer to `createStream`.
    private var stream: UInt32 = 1
    /// Bytes received in total, and how many of them were acknowledged.
    private var received: UInt64 = 0
    private var acknowledged: UInt64 = 0
    /// Bytes returned by `takeOutput` in total.
    private var sent: UInt64 = 0
    /// Acknowledgement window that the target announced, in bytes; the default applies until it does (§5.4.4).
    private var peerWindow: UInt64 = 2_500_000
    // Media.
    private var format: RestreamFormat?
    /// Whether `format` was sent to the target.
    private var isFormatTold = false
    /// The time that the target's time stamps count from, which is that of the first picture; nil before it.
    private var zero: MonotonicTime?
    /// Number of the latest sample; nil after a change of format.
    private var lastNumber: UInt64?
    /// Highest time stamp sent, in milliseconds.
    private var lastTimestamp: UInt32 = 0
    /// Whether pictures are dropped until the next key frame.
    private var isSkipping = true
    /// Pictures dropped because the target was too slow, or while waiting for a key frame; none before the first
    /// picture.
    package private(set) var dropped: UInt64 = 0

    /// - Parameter random: at least `RTMPHandshake.randomLength` bytes.
    package init(to address: RestreamAddress, key: Secret<String>, random: [UInt8], at now: MonotonicTime) {
        self.address = address
        self.key = key
        began = now
        output = RTMPHandshake.hello(random: random)
    }

    /// Whether the connection is finished, for whatever reason.
    package var isOver: Bool { if case .over = phase { true } else { false } }

    /// Removes and returns the bytes to send; empty if there are none.
    package mutating func takeOutput() -> [UInt8] {
        defer { output = [] }
        sent &+= UInt64(output.count)
        return output
    }

    // MARK: Bytes

    /// Processes bytes received from the target.
    package mutating func receive(_ bytes: Span<UInt8>) {
        guard !isOver, !bytes.isEmpty else { return }
        received &+= UInt64(bytes.count)
        guard received <= Self.chatterLimit + sent / 4 else {
            return finish(.malformed("it sends more than a target should"))
        }
        do throws(WireError) {
            var start = 0
            if phase == .hello { start = try shake(bytes) }
            if start < bytes.count { try readChunks(bytes.extracting(start..<bytes.count)) }
        } catch {
            finish(.malformed("it \(error.rtmpFault)"))
        }
        acknowledge()
    }

    /// Consumes bytes of the handshake.
    /// - Returns: the offset of the first byte after the handshake.
    private mutating func shake(_ bytes: Span<UInt8>) throws(WireError) -> Int {
        let count = min(RTMPHandshake.answerLength - collected.count, bytes.count)
        collected += try bytes.bytes(0..<count)
        guard collected.count == RTMPHandshake.answerLength else {
            // The first byte is the version. A peer of another protocol fails here and not after `joinLimit`.
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
        // Messages ahead of a malformed chunk still count: they may give the reason for the end.
        defer { for message in messages where !isOver { receive(message) } }
        try reader.read(bytes) { messages.append($0) }
    }

    /// Acknowledges received bytes after half a window, so that the target never has to stop and wait.
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
            // Answered with a window of the same size (§5.4.5).
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
        // Commands that cannot be parsed are ignored, such as ffmpeg's `onFCPublish`, which lacks a transaction
        // number.
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
        // Some targets refuse by `onStatus` and never answer `connect`.
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

    /// The target's description of a status, as one line without the stream key.
    ///
    /// Shown to the host and in logs, so characters that could forge further lines or hide text are removed.
    private func words(of command: RTMPCommand) -> String {
        let information = command.arguments.first ?? command.object
        let text = information[name: "description"]?.text ?? information[name: "code"]?.text ?? ""
        let visible = text.unicodeScalars.filter {
            switch $0.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .privateUse: false
            default: true
            }
        }
        // Only now, and by scalars: hidden characters or accents within the key must not keep it from being found.
        let line = String.UnicodeScalarView(visible).replacing(
            key.exposed.unicodeScalars, with: "…".unicodeScalars)
        return String(String(line).prefix(Self.wordsLimit))
    }

    /// Sends the commands that precede `publish`.
    private mutating func create() {
        phase = .creating
        writer.setChunkSize(Self.chunkSize, in: &output)
        let name = AMF0Value.string(key.exposed)
        // Flash's encoder sends these two first, and some services require them. Services that refuse them continue
        // anyway.
        write(RTMPCommand("releaseStream", transaction: Transaction.releaseStream, [name]).message())
        write(RTMPCommand("FCPublish", transaction: Transaction.announce, [name]).message())
        write(RTMPCommand("createStream", transaction: Transaction.createStream).message())
    }

    private mutating func publish(on number: Double?) {
        guard let stream = number.flatMap({ UInt32(exactly: $0) }) else {
            return finish(.malformed("it created a stream without a number"))
        }
        self.stream = stream
        phase = .asking
        write(
            RTMPCommand(
                "publish", transaction: Transaction.publish, [.string(key.exposed), .string("live")]
            ).message(on: stream))
    }

    private mutating func write(_ message: RTMPMessage) { writer.append(message, to: &output) }

    /// Ends the connection; only the first reason counts.
    private mutating func finish(_ failure: RestreamFailure?) {
        guard !isOver else { return }
        phase = .over(failure)
    }

    // MARK: Media

    /// Sends encoded media to the target, or drops it.
    /// - Parameter waiting: bytes already returned by `takeOutput` that the target has not accepted yet.
    package mutating func send(_ media: RestreamMedia, waiting: Int) {
        switch media {
        case .format(let new):
            format = new
            isFormatTold = false
            // Decoders can only continue with a key frame.
            isSkipping = true
            lastNumber = nil
        case .sample(let sample):
            let follows = lastNumber.map { sample.number == $0 &+ 1 } ?? true
            lastNumber = sample.number
            // A missing sample may be a picture that later pictures refer to.
            if !follows { isSkipping = true }
            // Numbers are noted before this point, so that acceptance does not look like a gap.
            guard phase == .live else { return }
            let waiting = waiting + output.count
            switch sample.kind {
            case .sound: sendSound(sample, waiting: waiting)
            case .keyFrame, .picture: sendPicture(sample, waiting: waiting)
            }
        }
    }

    /// Sends a picture, preceded by the format where it is due.
    /// - Parameter waiting: the whole backlog, in bytes.
    private mutating func sendPicture(_ sample: RestreamSample, waiting: Int) {
        let picture = AnnexBPicture(parsing: sample.bytes.span)
        // The pictures after a key frame without content refer to what was never sent.
        if sample.kind == .keyFrame, picture.units.isEmpty { isSkipping = true }
        if isSkipping {
            guard sample.kind == .keyFrame, !picture.units.isEmpty, waiting <= Self.resumeLimit else {
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
        guard isFormatTold, !picture.units.isEmpty else { return }
        let body = FLVVideoTag.h264(units: picture.units, isKeyFrame: sample.kind == .keyFrame)
        write(RTMPMessage(.video, timestamp: timestamp(of: sample), stream: stream, payload: body))
    }

    /// Sends a frame of sound, unless it is older than the first picture.
    private mutating func sendSound(_ sample: RestreamSample, waiting: Int) {
        guard let zero, sample.time >= zero, isFormatTold, waiting <= Self.soundLimit else { return }
        let body = FLVAudioTag.aac(frame: sample.bytes)
        write(RTMPMessage(.audio, timestamp: timestamp(of: sample), stream: stream, payload: body))
    }

    /// Sends metadata and the configurations of both codecs, which receivers need ahead of the first picture.
    ///
    /// Without parameter sets nothing is sent: `isFormatTold` stays false and media is dropped.
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

    /// Milliseconds since the first picture, modulo 2^32; never negative.
    private mutating func timestamp(of sample: RestreamSample) -> UInt32 {
        let milliseconds = sample.time.nanoseconds(since: zero ?? sample.time) / 1_000_000
        let timestamp = UInt32(truncatingIfNeeded: max(milliseconds, 0))
        // Sound and pictures are slightly out of order. A difference below 2^31 means later, modulo 2^32.
        if timestamp &- lastTimestamp < 1 << 31 { lastTimestamp = timestamp }
        return timestamp
    }

    // MARK: Time and the end

    /// When `advance` has to be called; nil if there is nothing to wait for.
    package var deadline: MonotonicTime? {
        switch phase {
        case .hello, .connecting, .creating, .asking: began + Self.joinLimit
        case .live, .over: nil
        }
    }

    /// Ends the connection if the target has not accepted the stream in time.
    package mutating func advance(to now: MonotonicTime) {
        if let deadline, now >= deadline { finish(.timedOut) }
    }

    /// Ends the stream regularly; the last commands are in the output of the next `takeOutput`.
    package mutating func end() {
        if phase == .live || phase == .asking {
            write(RTMPCommand("FCUnpublish", transaction: 6, [.string(key.exposed)]).message())
            write(RTMPCommand("deleteStream", transaction: 7, [.number(Double(stream))]).message())
        }
        finish(nil)
    }
}
