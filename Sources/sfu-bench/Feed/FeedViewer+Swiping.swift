import Base
import ClientPeer
import Peer
import Wire

// How a viewer moves through the feed, and what it measures meanwhile.

extension FeedViewer {
    /// Duration of a drag in nanoseconds, unless the next swipe comes sooner.
    private static let drags: ClosedRange<Int64> = 80_000_000...200_000_000

    /// How long packets that were under way when a stream was released may still arrive, in nanoseconds.
    private static let farewell: Int64 = 200_000_000

    // MARK: Moving

    /// Plans the first swipe, once there is a picture, a control channel, and a stream in focus.
    ///
    /// At a random moment, so that viewers do not swipe in step.
    func begin(at now: MonotonicTime) {
        guard nextSwipe == .distantFuture, hasFirstFrame, hasChannel, focus != nil, settings.interval > 0
        else {
            return
        }
        nextSwipe = now.advanced(byNanoseconds: Int64.random(in: 0...settings.interval, using: &moves))
    }

    /// Ends the current drag, or begins the next move.
    func move(at now: MonotonicTime) {
        if let drag {
            self.drag = nil
            if drag.isCalledOff {
                say("release", drag.target, at: now)
                box.tally.swiping.calledOff &+= 1
            } else {
                turn(to: drag.target, at: now)
            }
            return
        }
        // Of evenly distributed lengths, so that viewers do not swipe in step.
        let length = Int64.random(in: settings.interval / 2...settings.interval * 3 / 2, using: &moves)
        // A thread that was delayed must not make up for swipes.
        nextSwipe = max(nextSwipe.advanced(byNanoseconds: length), now)
        guard let focus, let next = pattern.next(from: focus, using: &moves) else { return }
        switch next {
        case .jump(let target):
            box.tally.swiping.jumps &+= 1
            turn(to: target, at: now)
        case .swipe(let target, let direction): peek(target, direction, isCalledOff: false, at: now)
        case .callOff(let target, let direction): peek(target, direction, isCalledOff: true, at: now)
        }
    }

    /// Begins a drag towards a neighbour; its end was decided in advance.
    private func peek(_ target: Int, _ direction: Int, isCalledOff: Bool, at now: MonotonicTime) {
        let longest = min(Self.drags.upperBound, settings.interval / 2)
        let length = Int64.random(in: min(Self.drags.lowerBound, longest)...longest, using: &moves)
        say("peek", target, direction: direction, at: now)
        box.tally.swiping.peeks &+= 1
        drag = Drag(
            target: target, began: now, ends: now.advanced(byNanoseconds: length), isCalledOff: isCalledOff,
            awaitsFrame: !isDecoding(target, at: now))
    }

    /// Puts a stream into focus, and begins to measure what that brings.
    private func turn(to target: Int, at now: MonotonicTime) {
        // The previous swipe has to end here: what it still lacks can no longer be attributed to it.
        if let swipe, !swipe.isFinished, settings.isMeasured { box.tally.swiping.unfinished &+= 1 }
        swipe = Swipe(target: target, sent: now, isPreloaded: isDecoding(target, at: now))
        focus = target
        say("focus", target, ahead: pattern.neighbour(of: target), at: now)
        box.tally.swiping.swipes &+= 1
    }

    /// Whether the picture of a stream is decoded in any slot.
    private func isDecoding(_ stream: Int, at now: MonotonicTime) -> Bool {
        lines.contains { $0.isVideo && $0.plays(stream, at: now) && $0.isDecoding }
    }

    /// Sends a message of the feed on the control channel, whose number is 0.
    private func say(
        _ type: String, _ stream: Int, direction: Int? = nil, ahead: Int? = nil, at now: MonotonicTime
    ) {
        var text = #"{"type":"\#(type)","stream":"\#(settings.streams[stream])""#
        if let direction { text += #","direction":"\#(direction > 0 ? "forward" : "backward")""# }
        if let ahead { text += #","ahead":"\#(settings.streams[ahead])""# }
        // A message that cannot be sent shows as a swipe without any effect.
        try? connection.send(DataChannelMessage(text + "}"), on: 0, at: now, into: &sink)
    }

    // MARK: What the server says

    /// Processes a message on the control channel; one that cannot be parsed counts as unreadable.
    func take(_ bytes: [UInt8], at now: MonotonicTime) {
        guard let notice = FeedNotice(parsing: bytes) else {
            box.tally.unreadable &+= 1
            return
        }
        switch notice {
        case .slots(let states): take(states, at: now)
        case .moved(let stream):
            box.tally.swiping.moved &+= 1
            focus = numbers[stream] ?? focus
            // The server took the viewer elsewhere: the current move is void.
            drag = nil
            swipe = nil
        case .refused: box.tally.swiping.refused &+= 1
        case .replaced, .other: break
        }
        begin(at: now)
    }

    /// Compares the slots with those before: notes releases, and judges packets that came ahead of this message.
    private func take(_ states: [FeedNotice.Line], at now: MonotonicTime) {
        let streams = Set(states.compactMap { $0.stream.flatMap { numbers[$0] } })
        for stream in held.subtracting(streams) {
            released[stream] = now
            watch.release(stream)
        }
        for stream in streams {
            released[stream] = nil
            if let early = untold.removeValue(forKey: stream) {
                let isLate = now.nanoseconds(since: early.since) > Self.farewell
                box.tally.swiping.strays &+= isLate ? early.packets : 0
            }
        }
        held = streams
        for state in states {
            guard let index = lines.firstIndex(where: { $0.mid == state.mid }) else { continue }
            let stream = state.stream.flatMap { numbers[$0] }
            if let current = lines[index].stream, current != stream { lines[index].isReleased = true }
            lines[index].told = stream
            // The first message decides the focus; later ones follow what the viewer requested.
            if focus == nil, state.quality == "full" { focus = stream }
        }
    }

    // MARK: What comes

    /// Evaluates a decrypted packet.
    ///
    /// - Parameters:
    ///   - index: of the line on which it arrived.
    ///   - number: its sequence number, unwrapped.
    func inspect(
        _ payload: Span<UInt8>, _ header: RTPHeader, _ index: Int, _ number: Int64, at now: MonotonicTime
    ) {
        let codec = lines[index].codecs[header.payloadType]
        let stamp = Self.stamp(of: payload, codec)
        // Only this tool's publishers name the stream in their media; for others, the server's message has to do.
        // The tag of a layer leads to its stream.
        let named = stamp?.tag.flatMap { tags[$0.ofStream] }
        guard let stream = named ?? lines[index].told else { return }
        let info = codec?.video.flatMap {
            try? VideoPayload.describe($0, payload: payload, marker: header.marker)
        }
        let startsKeyFrame = info?.startsKeyFrame ?? false
        if named != nil { observe(stream, at: now) }
        let begins = lines[index].receive(
            stream, startsKeyFrame: startsKeyFrame, isCertain: named != nil, at: now)
        if begins, named != nil, lines[index].isVideo, !startsKeyFrame {
            box.tally.swiping.brokenStarts &+= 1
        }
        if named == nil { box.tally.swiping.unnamed &+= 1 }
        let isComplete =
            lines[index].isVideo
            && lines[index].completesFirstFrame(
                index: number, timestamp: header.timestamp, marker: header.marker,
                startsKeyFrame: startsKeyFrame)
        if isComplete, !hasFirstFrame {
            hasFirstFrame = true
            note(.firstFrame, at: now)
            begin(at: now)
        }
        guard settings.isMeasured else { return }
        // Audio only, which is never replayed: the age of a replayed picture is not the latency of the path.
        if let time = stamp?.time, !lines[index].isVideo {
            addLatency(time, index, at: now)
        }
        if isComplete, drag?.target == stream, drag?.awaitsFrame == true, let began = drag?.began {
            drag?.awaitsFrame = false
            box.tally.swiping.preload.add(now.nanoseconds(since: began))
        }
        let packet = Arrival(
            endsFrame: header.marker, completesFirstFrame: isComplete,
            isFull: stamp?.tag.map { $0.layer == 0 } ?? true, left: stamp?.time)
        measure(stream, index, packet, at: now)
        if let captured = stamp?.captured { measureSkew(stream, index, header.timestamp, captured) }
    }

    /// Checks a packet against what the server may send: two streams, and none that was released a while ago.
    private func observe(_ stream: Int, at now: MonotonicTime) {
        if watch.receive(stream, at: now) > 2 { box.tally.swiping.overTwo &+= 1 }
        box.tally.swiping.mostAttached = max(box.tally.swiping.mostAttached, watch.most)
        guard let time = released[stream], now.nanoseconds(since: time) > Self.farewell else { return }
        // The message that attaches the stream again may be on its way; without one the packets were strays.
        let early = untold[stream] ?? (now, 0)
        untold[stream] = (early.since, early.packets + 1)
        guard now.nanoseconds(since: early.since) > Self.farewell else { return }
        box.tally.swiping.strays &+= early.packets + 1
        untold[stream] = (early.since, 0)
    }

    /// Adds a packet's latency, and the jitter since the previous one, unless it was sent before the stream began here.
    private func addLatency(_ sent: MonotonicTime, _ index: Int, at now: MonotonicTime) {
        let latency = now.nanoseconds(since: sent)
        guard latency >= 0, sent >= lines[index].start else { return }
        box.tally.latency.add(latency)
        if let last = lines[index].lastLatency { box.tally.jitter.add(abs(latency - last)) }
        lines[index].lastLatency = latency
    }

    /// The properties of a packet that matter to a swipe.
    private struct Arrival {
        let endsFrame: Bool
        let completesFirstFrame: Bool
        /// Whether it belongs to the best simulcast layer.
        let isFull: Bool
        /// When it left its publisher; nil if it has no stamp.
        let left: MonotonicTime?
    }

    /// Measures the delays of the current swipe, each of them once.
    private func measure(_ stream: Int, _ index: Int, _ packet: Arrival, at now: MonotonicTime) {
        guard var swipe, swipe.target == stream, !swipe.isFinished else { return }
        defer { self.swipe = swipe }
        /// Preloaded and cold swipes are separate distributions.
        func add(_ kind: WritableKeyPath<SwipeTally.Delays, LogHistogram>, since start: MonotonicTime) {
            let delays: WritableKeyPath<SwipeTally, SwipeTally.Delays> =
                swipe.isPreloaded ? \.preloaded : \.cold
            box.tally.swiping[keyPath: delays.appending(path: kind)].add(now.nanoseconds(since: start))
        }
        guard lines[index].isVideo else {
            if !swipe.hasAudio { add(\.audio, since: swipe.sent) }
            swipe.hasAudio = true
            return
        }
        // The neighbour's smallest layer is being received already: after a swipe to it, full quality counts. After a
        // jump, any layer does.
        guard packet.isFull || !swipe.isPreloaded else { return }
        if !swipe.hasPacket {
            add(\.packet, since: swipe.sent)
            if let left = packet.left { add(\.way, since: max(left, swipe.sent)) }
        }
        swipe.hasPacket = true
        // A picture that is being decoded needs no key frame: the end of its next frame counts.
        guard !swipe.hasFrame, packet.completesFirstFrame || lines[index].isDecoding && packet.endsFrame
        else { return }
        add(\.frame, since: swipe.sent)
        swipe.hasFrame = true
    }

    /// Measures by how much the server's sender reports shift picture and sound against each other.
    ///
    /// The publisher's stamp is the true time of capture of both.
    private func measureSkew(_ stream: Int, _ index: Int, _ timestamp: UInt32, _ captured: MonotonicTime) {
        // Replayed pictures are shown as fast as possible, without sound, and earlier reports are of another stream:
        // both are left out.
        guard let swipe, swipe.target == stream, !swipe.isSkewKnown, captured >= swipe.sent,
            let report = lines[index].report, report.time >= swipe.sent,
            let capture = lines[index].captureTime(timestamp)
        else { return }
        let offset = capture &- captured.nanoseconds
        if lines[index].isVideo { self.swipe?.videoOffset = offset } else { self.swipe?.audioOffset = offset }
        guard let video = self.swipe?.videoOffset, let audio = self.swipe?.audioOffset else { return }
        self.swipe?.isSkewKnown = true
        box.tally.swiping.skew.add(abs(video &- audio))
    }

    /// Reads what this tool's publishers write into VP8 and Opus; nil for other media.
    private static func stamp(
        of payload: Span<UInt8>, _ codec: MediaCodec?
    ) -> (time: MonotonicTime, tag: StreamTag?, captured: MonotonicTime?)? {
        let offset: Int?
        let tag: Int
        switch codec {
        case .vp8:
            offset = try? MediaStamp.offset(inVideo: payload)
            tag = StreamTag.offsetInVideo
        case .opus:
            offset = (try? SyntheticAudio.stampOffset(in: payload)) ?? nil
            tag = StreamTag.offsetInAudio
        default: return nil
        }
        guard let offset, let bits = try? payload.uint64(at: offset), let stamp = MediaStamp(bits: bits)
        else {
            return nil
        }
        let place = offset + tag
        let captured = (try? payload.uint64(at: place + StreamTag.toCapture)).flatMap { MediaStamp(bits: $0) }
        return (
            stamp.time, (try? payload.uint64(at: place)).flatMap { StreamTag(bits: $0) }, captured?.time
        )
    }
}
