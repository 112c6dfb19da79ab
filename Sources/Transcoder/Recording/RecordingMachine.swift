import Base
import Wire

/// Decides when a recording's file begins, which frame comes next, and when it ends.
///
/// Frames of both tracks wait until they can be put in order: a little while for each other, at the beginning until
/// their clocks are known. Time is a parameter.
struct RecordingMachine {
    enum Action: Equatable {
        case report(RecordingReport)
        case wantKeyFrame(InputID)
        /// Nothing more comes.
        case end
    }

    private enum Phase {
        case waiting
        case writing(Writing)
        case over
    }

    private struct Writing {
        let muxer: Muxer
        let video: Muxer.Video?
        /// What is 0 in the file.
        let zero: MonotonicTime
        /// Of each track's last frame, in microseconds.
        var lastVideo: Int64 = -1
        var lastAudio: Int64 = -1
        /// Where the last frame ends, in microseconds.
        var end: Int64 = 0
        var flushedAt: MonotonicTime
        /// Before a key frame.
        var cutAt: MonotonicTime?
        var isFlushed = false
    }

    /// One track's frames wait so long for the other's.
    private static let interleaving = Duration.milliseconds(400)
    /// The beginning waits so long for the senders' clocks.
    private static let clockPatience = Duration.milliseconds(1_500)
    /// And so long for a track that was promised.
    private static let trackPatience = Duration.seconds(4)
    /// And so long for one that was not: an encoder's sound often comes a moment after its picture, and a file that has
    /// begun without it has no place for it.
    private static let surprisePatience = Duration.seconds(1)
    private static let flushInterval = Duration.milliseconds(500)
    /// At least so much lies between fragments that begin with a key frame.
    private static let cutInterval = Duration.seconds(1)
    private static let keyFrameInterval = Duration.seconds(2)
    /// Of the last frame of a picture that stands still; in microseconds.
    private static let frameDuration: Int64 = 33_333

    private let request: RecordingRequest
    private var phase = Phase.waiting
    private var actions: [Action] = []
    private var inputs: Set<InputID> = []
    private var videoInput: InputID?
    private var audioInput: InputID?
    private var assembler = FrameAssembler()
    private var order = PacketOrder()
    private var video = RecordingTrack(rate: 90_000)
    private var audio = RecordingTrack(rate: 48_000)
    /// As the latest entry point said it.
    private var resolution: VideoResolution?
    private var firstArrival: MonotonicTime?
    private var askedAt: MonotonicTime?

    init(_ request: RecordingRequest) {
        self.request = request
    }

    mutating func takeActions() -> [Action] {
        defer { actions = [] }
        return actions
    }

    // MARK: Inputs

    mutating func open(_ input: InputID) {
        inputs.insert(input)
    }

    mutating func close(_ input: InputID) {
        inputs.remove(input)
        if videoInput == input { videoInput = nil }
        if audioInput == input { audioInput = nil }
    }

    mutating func take(_ packet: InputPacket, of input: InputID, at now: MonotonicTime) {
        guard inputs.contains(input), !isOver else { return }
        firstArrival = firstArrival ?? now
        if let codec = packet.codec.video {
            guard input.number >= videoInput?.number ?? 0 else { return }
            if videoInput != input {
                videoInput = input
                assembler = FrameAssembler()
                // Another source's numbers have nothing to do with these.
                video.change()
            }
            if packet.isEntryPoint {
                let info = try? VideoPayload.describe(
                    codec, payload: packet.payload.span, marker: packet.marker)
                resolution = info?.resolution ?? resolution
            }
            video.note(packet)
            keep(assembler.insert(packet, at: now))
            askForKeyFrame(at: now)
        } else {
            guard input.number >= audioInput?.number ?? 0 else { return }
            if audioInput != input {
                audioInput = input
                order = PacketOrder()
                audio.change()
            }
            audio.note(packet)
            for packet in order.insert(packet, at: now) { audio.append(packet) }
        }
        write(at: now)
    }

    mutating func advance(to now: MonotonicTime) {
        guard !isOver else { return }
        keep(assembler.advance(to: now))
        for packet in order.advance(to: now) { audio.append(packet) }
        askForKeyFrame(at: now)
        write(at: now)
        flush(at: now)
    }

    private mutating func keep(_ frames: [AssembledFrame]) {
        for frame in frames {
            var header: Muxer.Video?
            if frame.isKeyFrame {
                // Without its size nothing can begin.
                guard let resolution else { continue }
                header = Muxer.Video(
                    codec: frame.codec, resolution: resolution,
                    header: StreamHeader.header(frame.codec, of: frame.bytes))
            }
            video.append(frame, video: header)
        }
    }

    private mutating func askForKeyFrame(at now: MonotonicTime) {
        guard let videoInput, assembler.needsKeyFrame,
            askedAt.map({ now >= $0 + Self.keyFrameInterval }) ?? true
        else { return }
        askedAt = now
        actions.append(.wantKeyFrame(videoInput))
    }

    // MARK: The beginning

    private var isOver: Bool { if case .over = phase { true } else { false } }

    private mutating func begin(at now: MonotonicTime, isLast: Bool) {
        guard let firstArrival else { return }
        let waited = now - firstArrival
        let isComplete =
            (!request.expectsVideo || !video.isEmpty) && (!request.expectsAudio || !audio.isEmpty)
        let isCertain = (video.isEmpty || video.isCertain) && (audio.isEmpty || audio.isCertain)
        let isWhole = !video.isEmpty && !audio.isEmpty || waited >= Self.surprisePatience
        let isReady = isComplete && isWhole && (isCertain || waited >= Self.clockPatience)
        guard isReady || waited >= Self.trackPatience || isLast else { return }
        while let frame = video.first, frame.video == nil { video.removeFirst() }
        guard let first = video.first ?? audio.first else { return }
        // Pictures out of the cache are older than all else: they are shown in a moment, one after the other. What came
        // before the first sound of somebody whose sound is late is shown as it was.
        let picture = video.first.map { video.time(of: $0) }
        let starts = [picture, audio.first.map { audio.time(of: $0) }].compactMap(\.self)
        // No earlier than the first picture either, which a busy sender's reports may place later than it came.
        let zero = max(min(starts.max() ?? now, video.first?.arrival ?? now), picture ?? .zero)
        while let frame = audio.first, audio.time(of: frame) < zero, video.first != nil {
            audio.removeFirst()
        }
        let hasAudio = !audio.isEmpty || request.expectsAudio && first.video != nil && !isLast
        let container = RecordingContainer(for: first.video?.codec)
        do throws(Muxer.Failure) {
            let muxer = try Muxer(container, video: first.video, hasAudio: hasAudio)
            actions.append(
                .report(.began(container, first.video?.codec, first.video?.resolution, hasAudio: hasAudio)))
            report(muxer.takePieces())
            phase = .writing(Writing(muxer: muxer, video: first.video, zero: zero, flushedAt: now))
        } catch {
            fail()
        }
    }

    // MARK: Frames

    private mutating func write(at now: MonotonicTime, isLast: Bool = false) {
        if case .waiting = phase { begin(at: now, isLast: isLast) }
        while case .writing(var writing) = phase {
            // Out of the enum while it changes.
            guard let isVideo = next(writing, at: now, isLast: isLast) else { return }
            let isWritten: Bool
            do throws(Muxer.Failure) {
                isWritten = isVideo ? try writeVideo(&writing, at: now) : try writeAudio(&writing)
            } catch {
                return fail()
            }
            phase = .writing(writing)
            if !isWritten { return finish(.changed, at: now) }
        }
    }

    /// Whether a frame of video comes next; nil while nothing can be written.
    private func next(_ writing: Writing, at now: MonotonicTime, isLast: Bool) -> Bool? {
        guard let picture = video.first else {
            guard let sound = audio.first else { return nil }
            let isAlone = writing.muxer.videoTrack == nil
            return isAlone || isLast || now >= sound.arrival + Self.interleaving ? false : nil
        }
        guard let sound = audio.first else {
            let isAlone = writing.muxer.audioTrack == nil
            return isAlone || isLast || now >= picture.arrival + Self.interleaving ? true : nil
        }
        return video.time(of: picture) <= audio.time(of: sound)
    }

    /// - Returns: false if it does not fit into this file.
    private mutating func writeVideo(
        _ writing: inout Writing, at now: MonotonicTime
    ) throws(Muxer.Failure) -> Bool {
        guard let frame = video.first else { return true }
        guard let track = writing.muxer.videoTrack, fits(frame.video, writing) else {
            // A file must begin with a key frame, and the next one does.
            if frame.video == nil { video.removeFirst() }
            return frame.video == nil
        }
        if frame.isKeyFrame { try cut(&writing, at: now) }
        let time = microseconds(video.time(of: frame), writing, after: writing.lastVideo)
        writing.lastVideo = time
        writing.end = max(writing.end, time + Self.frameDuration)
        video.removeFirst()
        try writing.muxer.write(
            frame.bytes, track: track, at: time, duration: Self.frameDuration, isKeyFrame: frame.isKeyFrame)
        writing.isFlushed = false
        return true
    }

    /// Has a fragment of MP4 begin with the next frame, where a player may begin, too; once a second at most.
    private mutating func cut(_ writing: inout Writing, at now: MonotonicTime) throws(Muxer.Failure) {
        guard writing.video?.codec == .h264, writing.lastVideo >= 0, !writing.isFlushed,
            writing.cutAt.map({ now >= $0 + Self.cutInterval }) ?? true
        else { return }
        writing.cutAt = now
        try flush(&writing, at: now)
    }

    private func fits(_ video: Muxer.Video?, _ writing: Writing) -> Bool {
        guard let video, let begun = writing.video else { return writing.video != nil }
        // WebM's decoders find the size in each key frame; MP4 has parameter sets once.
        return video.codec == begun.codec && (video.codec != .h264 || video.header == begun.header)
    }

    private mutating func writeAudio(_ writing: inout Writing) throws(Muxer.Failure) -> Bool {
        guard let packet = audio.first else { return true }
        guard let track = writing.muxer.audioTrack else { return false }
        let time = microseconds(audio.time(of: packet), writing, after: writing.lastAudio)
        let duration = (packet.duration ?? .milliseconds(20)).wholeNanoseconds / 1_000
        writing.lastAudio = time
        writing.end = max(writing.end, time + duration)
        audio.removeFirst()
        try writing.muxer.write(packet.bytes, track: track, at: time, duration: duration, isKeyFrame: true)
        writing.isFlushed = false
        return true
    }

    /// Later than what was written before, by a millisecond at least, which WebM counts in.
    private func microseconds(_ time: MonotonicTime, _ writing: Writing, after last: Int64) -> Int64 {
        max(time.nanoseconds(since: writing.zero) / 1_000, last < 0 ? 0 : last + 1_000)
    }

    // MARK: The file

    private mutating func flush(at now: MonotonicTime) {
        guard case .writing(var writing) = phase, !writing.isFlushed,
            now >= writing.flushedAt + Self.flushInterval
        else { return }
        do throws(Muxer.Failure) {
            try flush(&writing, at: now)
        } catch {
            return fail()
        }
        phase = .writing(writing)
    }

    private mutating func flush(_ writing: inout Writing, at now: MonotonicTime) throws(Muxer.Failure) {
        try writing.muxer.flush()
        writing.flushedAt = now
        writing.isFlushed = true
        report(writing.muxer.takePieces())
        actions.append(.report(.flushed(milliseconds: UInt64(clamping: writing.end / 1_000))))
    }

    /// Completes the file.
    mutating func finish(_ cause: RecordingReport.Cause, at now: MonotonicTime) {
        guard !isOver else { return }
        if cause == .stopped { write(at: now, isLast: true) }
        guard case .writing(let writing) = phase else {
            if !isOver {
                actions += [.report(.finished(milliseconds: 0, cause)), .end]
                phase = .over
            }
            return
        }
        do throws(Muxer.Failure) {
            try writing.muxer.end()
        } catch {
            return fail()
        }
        phase = .over
        report(writing.muxer.takePieces())
        let length = UInt64(clamping: writing.end / 1_000)
        actions += [.report(.finished(milliseconds: length, cause)), .end]
    }

    /// Nobody wants it any more.
    mutating func abandon() {
        phase = .over
        actions = []
    }

    private mutating func fail() {
        phase = .over
        actions += [.report(.finished(milliseconds: 0, .failed)), .end]
    }

    private mutating func report(_ pieces: [Muxer.Piece]) {
        for piece in pieces {
            var start = 0
            while start < piece.bytes.count {
                let end = min(start + RecordingReport.pieceLimit, piece.bytes.count)
                actions.append(
                    .report(.bytes(offset: piece.offset + UInt64(start), Array(piece.bytes[start..<end]))))
                start = end
            }
        }
    }
}
