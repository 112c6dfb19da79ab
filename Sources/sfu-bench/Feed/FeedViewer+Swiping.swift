import Base
import ClientPeer
import Peer
import Wire

// How a viewer moves, and what it hears of the server.

extension FeedViewer {
    /// A drag takes so long, in nanoseconds, if the next swipe leaves the time.
    private static let drags: ClosedRange<Int64> = 80_000_000...200_000_000

    /// What was under way when a stream was released may still come for so long.
    private static let farewell: Int64 = 200_000_000

    // MARK: Moving

    /// Plans the next swipe, once there is a picture and a stream in focus.
    func begin(at now: MonotonicTime) {
        guard nextSwipe == .distantFuture, hasFirstFrame, hasChannel, focus != nil, settings.interval > 0
        else {
            return
        }
        nextSwipe = now.advanced(byNanoseconds: Int64.random(in: 0...settings.interval, using: &moves))
    }

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
        // Of evenly spread lengths, so that viewers do not move in step.
        let length = Int64.random(in: settings.interval / 2...settings.interval * 3 / 2, using: &moves)
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

    private func peek(_ target: Int, _ direction: Int, isCalledOff: Bool, at now: MonotonicTime) {
        let longest = min(Self.drags.upperBound, settings.interval / 2)
        let length = Int64.random(in: min(Self.drags.lowerBound, longest)...longest, using: &moves)
        say("peek", target, direction: direction, at: now)
        box.tally.swiping.peeks &+= 1
        drag = Drag(
            target: target, began: now, ends: now.advanced(byNanoseconds: length), isCalledOff: isCalledOff,
            awaitsFrame: !isDecoding(target, at: now))
    }

    private func turn(to target: Int, at now: MonotonicTime) {
        if let swipe, !swipe.isFinished, settings.isMeasured { box.tally.swiping.unfinished &+= 1 }
        swipe = Swipe(target: target, sent: now, isPreloaded: isDecoding(target, at: now))
        focus = target
        say("focus", target, ahead: pattern.neighbour(of: target), at: now)
        box.tally.swiping.swipes &+= 1
    }

    private func isDecoding(_ stream: Int, at now: MonotonicTime) -> Bool {
        lines.contains { $0.isVideo && $0.plays(stream, at: now) && $0.isDecoding }
    }

    private func say(
        _ type: String, _ stream: Int, direction: Int? = nil, ahead: Int? = nil, at now: MonotonicTime
    ) {
        var text = #"{"type":"\#(type)","stream":"\#(settings.streams[stream])""#
        if let direction { text += #","direction":"\#(direction > 0 ? "forward" : "backward")""# }
        if let ahead { text += #","ahead":"\#(settings.streams[ahead])""# }
        // One that cannot be sent shows as a swipe that brought nothing.
        try? connection.send(DataChannelMessage(text + "}"), on: 0, at: now, into: &sink)
    }

    // MARK: What the server says

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
            drag = nil
            swipe = nil
        case .refused: box.tally.swiping.refused &+= 1
        case .replaced, .other: break
        }
        begin(at: now)
    }

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
            if focus == nil, state.quality == "full" { focus = stream }
        }
    }

    // MARK: What comes

    func inspect(
        _ payload: Span<UInt8>, _ header: RTPHeader, _ index: Int, _ number: Int64, at now: MonotonicTime
    ) {
        let codec = lines[index].codecs[header.payloadType]
        let stamp = Self.stamp(of: payload, codec)
        // Media of other publishers does not say what it is: the server's word is taken for it.
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
        // Of sound, which is never replayed: the age of a replayed picture says nothing of its way.
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

    private func observe(_ stream: Int, at now: MonotonicTime) {
        if watch.receive(stream, at: now) > 2 { box.tally.swiping.overTwo &+= 1 }
        box.tally.swiping.mostAttached = max(box.tally.swiping.mostAttached, watch.most)
        guard let time = released[stream], now.nanoseconds(since: time) > Self.farewell else { return }
        // A message that puts the stream back may be on its way; if none comes, they were not meant for us.
        let early = untold[stream] ?? (now, 0)
        untold[stream] = (early.since, early.packets + 1)
        guard now.nanoseconds(since: early.since) > Self.farewell else { return }
        box.tally.swiping.strays &+= early.packets + 1
        untold[stream] = (early.since, 0)
    }

    private func addLatency(_ sent: MonotonicTime, _ index: Int, at now: MonotonicTime) {
        let latency = now.nanoseconds(since: sent)
        guard latency >= 0, sent >= lines[index].start else { return }
        box.tally.latency.add(latency)
        if let last = lines[index].lastLatency { box.tally.jitter.add(abs(latency - last)) }
        lines[index].lastLatency = latency
    }

    /// What a packet means to a swipe.
    private struct Arrival {
        let endsFrame: Bool
        let completesFirstFrame: Bool
        /// Of the best layer.
        let isFull: Bool
        /// When it left its publisher, if it says so.
        let left: MonotonicTime?
    }

    private func measure(_ stream: Int, _ index: Int, _ packet: Arrival, at now: MonotonicTime) {
        guard var swipe, swipe.target == stream, !swipe.isFinished else { return }
        defer { self.swipe = swipe }
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
        // The neighbour's least layer comes already; what it is promoted to counts. A jump begins with what there is.
        guard packet.isFull || !swipe.isPreloaded else { return }
        if !swipe.hasPacket {
            add(\.packet, since: swipe.sent)
            if let left = packet.left { add(\.way, since: max(left, swipe.sent)) }
        }
        swipe.hasPacket = true
        // What is decoded already needs no key frame: its next frame counts.
        guard !swipe.hasFrame, packet.completesFirstFrame || lines[index].isDecoding && packet.endsFrame
        else { return }
        add(\.frame, since: swipe.sent)
        swipe.hasFrame = true
    }

    /// Compares where the server's reports put picture and sound with when they were captured.
    private func measureSkew(_ stream: Int, _ index: Int, _ timestamp: UInt32, _ captured: MonotonicTime) {
        // What is replayed from the past is shown as fast as it can be, without sound; earlier reports are of another
        // stream.
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
