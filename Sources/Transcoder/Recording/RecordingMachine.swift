import Base
import Wire

/// Decides when a recording's file begins, which frame is next, and when the file ends.
///
/// Frames of both tracks wait until they can be interleaved: briefly for each other, and at the beginning until their
/// clocks are known. Time is a parameter.
struct RecordingMachine {
    /// What the caller has to do.
    enum Action: Equatable {
        case report(RecordingReport)
        case wantKeyFrame(InputID)
        /// The recording is over.
        case end
    }

    /// Before, during and after the file.
    private enum Phase {
        case waiting
        case writing(Writing)
        case over
    }

    private struct Writing {
        let muxer: Muxer
        let video: Muxer.Video?
        /// The time that is 0 in the file.
        let zero: MonotonicTime
        /// Times of each track's last frame, in microseconds; -1 before the first.
        var lastVideo: Int64 = -1
        var lastAudio: Int64 = -1
        /// End of the last frame, in microseconds.
        var end: Int64 = 0
        var flushedAt: MonotonicTime
        /// When a fragment was last ended ahead of a key frame; nil before the first time.
        var cutAt: MonotonicTime?
        /// Whether nothing was written since the last flush.
        var isFlushed = false
    }

    /// How long frames of one track wait for the other's.
    private static let interleaving = Duration.milliseconds(400)
    /// How long the beginning waits for sender reports, by which tracks are synchronized.
    private static let clockPatience = Duration.milliseconds(1_500)
    /// How long it waits for a track that was announced.
    private static let trackPatience = Duration.seconds(4)
    /// How long it waits for a track that was not announced.
    ///
    /// An encoder's sound often starts shortly after its picture, and no track can be added to a file that has begun.
    private static let surprisePatience = Duration.seconds(1)
    /// Longest time between two flushes, which bounds what a crash can lose.
    private static let flushInterval = Duration.milliseconds(500)
    /// Shortest time between fragments that begin with a key frame.
    private static let cutInterval = Duration.seconds(1)
    /// Shortest time between two requests for a key frame.
    private static let keyFrameInterval = Duration.seconds(2)
    /// Assumed duration of a picture, in microseconds.
    private static let frameDuration: Int64 = 33_333

    private let request: RecordingRequest
    private var phase = Phase.waiting
    private var actions: [Action] = []
    private var inputs: Set<InputID> = []
    /// The inputs in use: those with the highest numbers, which were opened last.
    private var videoInput: InputID?
    private var audioInput: InputID?
    private var assembler = FrameAssembler()
    private var order = PacketOrder()
    private var video = RecordingTrack(rate: 90_000)
    private var audio = RecordingTrack(rate: 48_000)
    /// Picture size from the latest entry point.
    private var resolution: VideoResolution?
    /// The latest parameter sets of H.264, and the epoch that they belong to.
    private var parameterSets: (bytes: [UInt8], epoch: UInt32)?
    /// Whether frames are dropped until a key frame at which players can begin.
    private var awaitsKeyFrame = false
    /// When the first packet was processed; nil before.
    private var firstArrival: MonotonicTime?
    /// When a key frame was last requested.
    private var askedAt: MonotonicTime?

    init(_ request: RecordingRequest) {
        self.request = request
    }

    /// Removes and returns the actions to perform.
    mutating func takeActions() -> [Action] {
        defer { actions = [] }
        return actions
    }

    // MARK: Inputs

    mutating func open(_ input: InputID) {
        inputs.insert(input)
    }

    /// Ends an input; frames that wait are still written.
    mutating func close(_ input: InputID) {
        inputs.remove(input)
        if videoInput == input { videoInput = nil }
        if audioInput == input { audioInput = nil }
    }

    /// Processes a packet; packets of older inputs are ignored.
    mutating func take(_ packet: InputPacket, of input: InputID, at now: MonotonicTime) {
        guard inputs.contains(input), !isOver else { return }
        firstArrival = firstArrival ?? now
        if let codec = packet.codec.video {
            guard input.number >= videoInput?.number ?? 0 else { return }
            if videoInput != input {
                videoInput = input
                assembler = FrameAssembler()
                parameterSets = nil
                // Numbers and times of different inputs are unrelated.
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

    /// Gives up missing packets, and writes and flushes what is due.
    mutating func advance(to now: MonotonicTime) {
        guard !isOver else { return }
        keep(assembler.advance(to: now))
        for packet in order.advance(to: now) { audio.append(packet) }
        askForKeyFrame(at: now)
        write(at: now)
        flush(at: now)
    }

    /// Queues assembled frames.
    private mutating func keep(_ frames: [AssembledFrame]) {
        for frame in frames {
            let header = frame.isKeyFrame ? beginning(at: frame) : nil
            if frame.isKeyFrame { awaitsKeyFrame = header == nil }
            if !awaitsKeyFrame { video.append(frame, video: header) }
        }
    }

    /// What players need to begin at a key frame; nil if it is not known: a packet in front of the picture was lost.
    private mutating func beginning(at frame: AssembledFrame) -> Muxer.Video? {
        var sets = StreamHeader.header(frame.codec, of: frame.bytes)
        if frame.codec == .h264 {
            let known = parameterSets?.epoch == frame.epoch ? parameterSets?.bytes : nil
            sets = StreamHeader.parameterSets(of: frame.bytes, after: known ?? [])
            guard !sets.isEmpty else { return nil }
            parameterSets = (sets, frame.epoch)
        }
        return resolution.map { Muxer.Video(codec: frame.codec, resolution: $0, header: sets) }
    }

    /// Requests a key frame if no frame can be assembled or written without one.
    private mutating func askForKeyFrame(at now: MonotonicTime) {
        guard let videoInput, assembler.needsKeyFrame || awaitsKeyFrame,
            askedAt.map({ now >= $0 + Self.keyFrameInterval }) ?? true
        else { return }
        askedAt = now
        actions.append(.wantKeyFrame(videoInput))
    }

    // MARK: The beginning

    private var isOver: Bool { if case .over = phase { true } else { false } }

    /// Begins the file if all tracks are ready or have been waited for.
    /// - Parameter isLast: whether the recording ends, so that nothing is waited for.
    private mutating func begin(at now: MonotonicTime, isLast: Bool) {
        guard let firstArrival else { return }
        let waited = now - firstArrival
        let isComplete =
            (!request.expectsVideo || !video.isEmpty) && (!request.expectsAudio || !audio.isEmpty)
        let isCertain = (video.isEmpty || video.isCertain) && (audio.isEmpty || audio.isCertain)
        let isWhole = !video.isEmpty && !audio.isEmpty || waited >= Self.surprisePatience
        let isReady = isComplete && isWhole && (isCertain || waited >= Self.clockPatience)
        guard isReady || waited >= Self.trackPatience || isLast else { return }
        // The file begins with a key frame.
        while let frame = video.first, frame.video == nil { video.removeFirst() }
        guard let first = video.first ?? audio.first else { return }
        // Cached pictures are older than all other media: they are shown at the beginning, in quick succession. Media
        // before the first sound keeps its times if that sound is late.
        let picture = video.first.map { video.time(of: $0) }
        let starts = [picture, audio.first.map { audio.time(of: $0) }].compactMap(\.self)
        // Not before the first picture either, which a sender under load may report later than it arrived.
        let zero = max(min(starts.max() ?? now, video.first?.arrival ?? now), picture ?? .zero)
        // Sound that is all older than the picture goes on as well as announced sound will begin.
        let isAudioDue = !audio.isEmpty || request.expectsAudio
        while let frame = audio.first, audio.time(of: frame) < zero, video.first != nil {
            audio.removeFirst()
        }
        // A track for sound that is still missing, unless the recording ends here.
        let hasAudio = !audio.isEmpty || isAudioDue && first.video != nil && !isLast
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

    /// Writes all frames that are next.
    private mutating func write(at now: MonotonicTime, isLast: Bool = false) {
        if case .waiting = phase { begin(at: now, isLast: isLast) }
        while case .writing(var writing) = phase {
            // A copy: the associated value cannot be modified in place.
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

    /// Whether the next frame is a video frame; nil if none can be written yet.
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

    /// Writes the next video frame.
    /// - Returns: false if it does not fit into this file.
    private mutating func writeVideo(
        _ writing: inout Writing, at now: MonotonicTime
    ) throws(Muxer.Failure) -> Bool {
        guard let frame = video.first else { return true }
        guard let track = writing.muxer.videoTrack, fits(frame.video, writing) else {
            // The next file has to begin with a key frame, so frames before it are dropped.
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

    /// Ends an MP4 fragment ahead of a key frame, at most once per second, so that players can begin at the next one.
    private mutating func cut(_ writing: inout Writing, at now: MonotonicTime) throws(Muxer.Failure) {
        guard writing.video?.codec == .h264, writing.lastVideo >= 0, !writing.isFlushed,
            writing.cutAt.map({ now >= $0 + Self.cutInterval }) ?? true
        else { return }
        writing.cutAt = now
        try flush(&writing, at: now)
    }

    /// Whether a key frame's parameters are those of the file; other frames always fit into a file with video.
    private func fits(_ video: Muxer.Video?, _ writing: Writing) -> Bool {
        guard let video, let begun = writing.video else { return writing.video != nil }
        // WebM decoders read the size from each key frame, whereas MP4 stores parameter sets only once.
        return video.codec == begun.codec && (video.codec != .h264 || video.header == begun.header)
    }

    /// Writes the next audio packet.
    /// - Returns: false if the file has no audio track.
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

    /// The time in the file, at least one millisecond after the last frame: the resolution of WebM.
    private func microseconds(_ time: MonotonicTime, _ writing: Writing, after last: Int64) -> Int64 {
        max(time.nanoseconds(since: writing.zero) / 1_000, last < 0 ? 0 : last + 1_000)
    }

    // MARK: The file

    /// Flushes if that is due.
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

    /// Flushes, and reports how much of the file is playable.
    private mutating func flush(_ writing: inout Writing, at now: MonotonicTime) throws(Muxer.Failure) {
        try writing.muxer.flush()
        writing.flushedAt = now
        writing.isFlushed = true
        report(writing.muxer.takePieces())
        actions.append(.report(.flushed(milliseconds: UInt64(clamping: writing.end / 1_000))))
    }

    /// Completes the file.
    /// - Parameter cause: `stopped` also writes all waiting frames.
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

    /// Ends without completing the file; pending actions are discarded.
    mutating func abandon() {
        phase = .over
        actions = []
    }

    /// Ends after an error of the muxer.
    private mutating func fail() {
        phase = .over
        actions += [.report(.finished(milliseconds: 0, .failed)), .end]
    }

    /// Reports the muxer's output, split into pieces that fit into a message.
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
