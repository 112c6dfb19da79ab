import Base
import Codecs
import Wire

/// A packet of a rendition.
package struct RenditionPacket: Sendable {
    /// What it belongs to, as the server counts renditions.
    package enum Kind: UInt8, Sendable {
        /// A picture every two seconds.
        case stills = 0
        case low = 1
    }

    package let kind: Kind
    /// When its picture was captured, on the machine's monotonic clock.
    package let captured: MonotonicTime
    /// A whole RTP packet in the clear.
    package let bytes: [UInt8]
}

/// Makes a smaller picture of one video source, and a still of it every two seconds.
///
/// Takes packets in as they come, and makes a picture of the newest frame whenever it is asked: what came before it is
/// only decoded, so that who falls behind has fewer pictures and not late ones. Time stamps follow the capture times
/// of the source. Pure: time is a parameter.
package final class RenditionMaker {
    /// On request key frames come not more often than this: they take much of so little.
    static let shortestKeyFrameInterval = Duration.milliseconds(500)
    static let stillInterval = Duration.seconds(2)
    /// More pictures than these are left out, in ticks of 90 kHz: 30 a second that do not come evenly.
    private static let shortestStep: Int64 = 2_700
    private static let framesPerSecond = 30
    /// A picture that was captured so long before the one that came before it means a clock that was set back.
    private static let setBack: Int64 = 45_000
    /// Packets that are missing are looked for so often.
    private static let look = Duration.milliseconds(100)

    private let settings: RenditionSettings
    private let input: VideoInput
    private let start: MonotonicTime
    private var encoder: VP8Encoder?
    private var packets: PacketMaker
    private var stillPackets: PacketMaker
    private var isKeyFrameWanted = true
    private var isHigherNext = false
    private var lastKeyFrame: MonotonicTime?
    private var lastStill = MonotonicTime.zero
    private var nextStill = MonotonicTime.zero
    /// Of the latest picture; nil before the first.
    private var lastTicks: Int64?
    /// Added to time stamps: a publisher's clock may be set back.
    private var offset: Int64 = 0
    private var meter = CompositionMeter()
    /// When `advance` wants to be called, whatever comes.
    package private(set) var deadline: MonotonicTime

    /// - Parameters:
    ///   - seed: sets SSRCs and first numbers; another one for each life of a rendition.
    ///   - makeDecoder: what libraries do for it; tests may stand in.
    init(
        _ settings: RenditionSettings, seed: UInt64, at now: MonotonicTime,
        makeDecoder: @escaping (VideoCodec) -> (any PictureDecoder)?
    ) {
        self.settings = settings
        start = now
        deadline = now + Self.look
        packets = PacketMaker(seed: seed, stream: RenditionPacket.Kind.low.rawValue)
        stillPackets = PacketMaker(seed: seed, stream: RenditionPacket.Kind.stills.rawValue)
        let (long, short) = (max(settings.longSide, 64), max(settings.shortSide, 64))
        input = VideoInput(
            resize: { picture throws(CodecError) in try picture.scaled(longSide: long, shortSide: short) },
            makeDecoder: makeDecoder)
    }

    // MARK: Input

    /// Takes a packet in.
    package func receive(_ packet: InputPacket, at now: MonotonicTime) {
        // All that has come is decoded: only the newest is shown.
        input.allow(.max)
        _ = input.receive(packet, at: now)
    }

    /// Somebody cannot begin, or go on, without a key frame.
    package func requestKeyFrame(of kind: RenditionPacket.Kind) {
        switch kind {
        case .low: isKeyFrameWanted = true
        case .stills: nextStill = min(nextStill, lastStill + Self.shortestKeyFrameInterval)
        }
    }

    /// Whether the publisher has to make a key frame.
    package func takeKeyFrameWish() -> Bool { input.takeKeyFrameWish() }

    // MARK: Output

    /// Makes the newest picture, if it was not made yet.
    package func advance(to now: MonotonicTime) -> [RenditionPacket] {
        deadline = now + Self.look
        input.advance(to: now)
        guard let taken = input.takePicture(capturedBy: .distantFuture) else { return [] }
        guard let ticks = ticks(at: taken.captured) else { return [] }
        lastTicks = ticks
        meter.notePicture(waited: now - taken.arrival)
        let timestamp = UInt32(truncatingIfNeeded: ticks)
        var made: [RenditionPacket] = []
        if let frame = encode(taken.picture, ticks, at: now) {
            made += packets.vp8(frame.bytes, timestamp: timestamp, isInHigherLayer: frame.isInHigherLayer)
                .map { RenditionPacket(kind: .low, captured: taken.captured, bytes: $0) }
        }
        if now >= nextStill, let still = try? still(of: taken.picture) {
            lastStill = now
            nextStill = now + Self.stillInterval
            made += stillPackets.vp8(still, timestamp: timestamp)
                .map { RenditionPacket(kind: .stills, captured: taken.captured, bytes: $0) }
        }
        return made
    }

    /// Takes in what the work since the last call cost.
    package func note(cost: Duration) { meter.finish(cost: cost) }

    /// What happened since the last call.
    package func takeStatus(at now: MonotonicTime) -> RenditionStatus {
        let measured = meter.takeStatus(at: now)
        var status = RenditionStatus()
        status.framesPerSecond = measured.framesPerSecond
        status.load = measured.load
        status.latencyMilliseconds = measured.latencyHighMilliseconds
        return status
    }

    /// The time stamp of a picture; nil for one that comes too soon after the one before.
    private func ticks(at time: MonotonicTime) -> Int64? {
        let (seconds, rest) = time.nanoseconds(since: start).quotientAndRemainder(dividingBy: 1_000_000_000)
        let plain = seconds &* 90_000 &+ rest &* 90_000 / 1_000_000_000
        guard let lastTicks else { return plain }
        let step = plain &+ offset &- lastTicks
        if step < -Self.setBack { offset = lastTicks &+ Self.shortestStep &- plain }
        guard step >= Self.shortestStep || step < -Self.setBack else { return nil }
        return plain &+ offset
    }

    // MARK: Encoding

    private func encode(
        _ picture: Picture, _ ticks: Int64, at now: MonotonicTime
    ) -> (bytes: [UInt8], isInHigherLayer: Bool)? {
        if (encoder?.settings.width, encoder?.settings.height) != (picture.width, picture.height) {
            encoder = open(picture)
            lastKeyFrame = nil
        }
        let mayRefresh = lastKeyFrame.map { now >= $0 + Self.shortestKeyFrameInterval } ?? true
        let isKeyFrame = lastKeyFrame == nil || isKeyFrameWanted && mayRefresh
        let isInHigherLayer = isHigherNext && !isKeyFrame
        let frame = try? encoder?.encode(
            picture, timestamp: ticks, isKeyFrame: isKeyFrame, isInHigherLayer: isInHigherLayer)
        guard let frame else { return nil }
        if frame.isKeyFrame {
            lastKeyFrame = now
            isKeyFrameWanted = false
        }
        isHigherNext = !isInHigherLayer
        meter.noteFrame(bytes: frame.bytes.count)
        return (frame.bytes, isInHigherLayer && !frame.isKeyFrame)
    }

    private func open(_ picture: Picture) -> VP8Encoder? {
        var settings = VP8Encoder.Settings(
            width: picture.width, height: picture.height, framesPerSecond: Self.framesPerSecond,
            bitrate: self.settings.bitrate)
        settings.lowerLayerShare = self.settings.lowerLayerShare
        settings.keyFrameShare = 600
        settings.isStrict = true
        return try? VP8Encoder(settings)
    }

    /// Each by an encoder of its own, which lives for one picture: none is made of another.
    private func still(of picture: Picture) throws(CodecError) -> [UInt8]? {
        let picture = try picture.scaled(
            longSide: self.settings.longSide * 3 / 4, shortSide: self.settings.shortSide * 3 / 4)
        let share = settings.stillsBitrate * Int(Self.stillInterval.wholeNanoseconds / 1_000_000) / 1_000
        var settings = VP8Encoder.Settings(
            width: picture.width, height: picture.height, framesPerSecond: 1, bitrate: share)
        settings.keyFrameShare = 100
        settings.isStrict = true
        return try VP8Encoder(settings).encode(picture, timestamp: 0, isKeyFrame: true)?.bytes
    }
}

extension Picture {
    /// Not larger than this along its longer and its shorter side, with the proportions kept and both sides even, as
    /// encoders want them.
    func scaled(longSide: Int, shortSide: Int) throws(CodecError) -> Picture {
        let (long, short) = (max(width, height), min(width, height))
        // By the side that is too long by more.
        let isLong = long * shortSide >= short * longSide
        let (limit, side) = isLong ? (longSide, long) : (shortSide, short)
        guard side > limit else {
            return try scaled(width: max(width & ~1, 16), height: max(height & ~1, 16))
        }
        func part(_ length: Int) -> Int { max((length * limit / side) & ~1, 16) }
        return try scaled(width: part(width), height: part(height))
    }
}
