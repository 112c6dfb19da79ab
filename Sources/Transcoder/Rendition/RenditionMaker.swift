import Base
import Codecs
import Wire

/// An RTP packet of a rendition.
package struct RenditionPacket: Sendable {
    /// The rendition to which the packet belongs; the raw value is its layer in the track.
    package enum Kind: UInt8, Sendable {
        /// A picture every two seconds.
        case stills = 0
        /// A smaller picture at full rate.
        case low = 1
    }

    package let kind: Kind
    /// When its picture was captured, on the server's clock.
    package let captured: MonotonicTime
    /// A whole RTP packet, not encrypted.
    package let bytes: [UInt8]
}

/// Re-encodes one video source at a smaller size, and a still of it every two seconds.
///
/// Accepts packets as they arrive, and encodes the newest picture at each call of `advance`. Earlier ones are only
/// decoded, so under load there are fewer pictures, and they are not late. RTP time stamps follow the capture times of
/// the source. Pure: time is a parameter.
package final class RenditionMaker {
    /// Shortest distance of key frames that are made on request: each takes a large part of the small bit rate.
    static let shortestKeyFrameInterval = Duration.milliseconds(500)
    /// Distance of two stills.
    static let stillInterval = Duration.seconds(2)
    /// Shortest distance of encoded pictures, in ticks of 90 kHz: slightly below that of 30 per second, because they
    /// do not arrive evenly.
    private static let shortestStep: Int64 = 2_700
    private static let framesPerSecond = 30
    /// Ticks by which a picture has to precede the last one to count as a clock that was set back.
    private static let setBack: Int64 = 45_000
    /// Interval at which missing packets are given up, if nothing arrives.
    private static let look = Duration.milliseconds(100)

    private let settings: RenditionSettings
    private let input: VideoInput
    /// The time of RTP tick 0.
    private let start: MonotonicTime
    private var encoder: VP8Encoder?
    private var packets: PacketMaker
    private var stillPackets: PacketMaker
    private var isKeyFrameWanted = true
    /// Whether the next picture belongs to the higher temporal layer.
    private var isHigherNext = false
    private var lastKeyFrame: MonotonicTime?
    private var lastStill = MonotonicTime.zero
    private var nextStill = MonotonicTime.zero
    /// RTP ticks of the latest picture; nil before the first.
    private var lastTicks: Int64?
    /// Added to RTP ticks, which must not decrease when a publisher's clock is set back.
    private var offset: Int64 = 0
    private var meter = CompositionMeter()
    /// When `advance` has to be called, even if nothing arrives.
    package private(set) var deadline: MonotonicTime

    /// - Parameters:
    ///   - seed: determines SSRCs and first sequence numbers; different for each life of a rendition.
    ///   - makeDecoder: creates decoders; tests replace them with stubs.
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

    /// Processes a packet.
    package func receive(_ packet: InputPacket, at now: MonotonicTime) {
        // Everything is decoded immediately, because only the newest picture is shown.
        input.allow(.max)
        _ = input.receive(packet, at: now)
    }

    /// Requests a key frame of a rendition, for a viewer who cannot begin or continue without one.
    package func requestKeyFrame(of kind: RenditionPacket.Kind) {
        switch kind {
        case .low: isKeyFrameWanted = true
        case .stills: nextStill = min(nextStill, lastStill + Self.shortestKeyFrameInterval)
        }
    }

    /// Whether to request a key frame from the publisher; resets the request.
    package func takeKeyFrameWish() -> Bool { input.takeKeyFrameWish() }

    // MARK: Output

    /// Encodes the newest picture, unless that has been done.
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

    /// Notes the time that the work since the last call took.
    package func note(cost: Duration) { meter.finish(cost: cost) }

    /// Returns measurements, and begins a new interval.
    package func takeStatus(at now: MonotonicTime) -> RenditionStatus {
        let measured = meter.takeStatus(at: now)
        var status = RenditionStatus()
        status.framesPerSecond = measured.framesPerSecond
        status.load = measured.load
        status.latencyMilliseconds = measured.latencyHighMilliseconds
        return status
    }

    /// The RTP ticks of a picture; nil if it follows the last one too closely.
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

    /// Encodes the smaller picture, in two temporal layers; nil if the encoder dropped it.
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

    /// Opens an encoder, strict because the bit rate must fit a slow path.
    private func open(_ picture: Picture) -> VP8Encoder? {
        var settings = VP8Encoder.Settings(
            width: picture.width, height: picture.height, framesPerSecond: Self.framesPerSecond,
            bitrate: self.settings.bitrate)
        settings.lowerLayerShare = self.settings.lowerLayerShare
        settings.keyFrameShare = 600
        settings.isStrict = true
        return try? VP8Encoder(settings)
    }

    /// Encodes a still as a key frame, with an encoder used only once: no still refers to another.
    private func still(of picture: Picture) throws(CodecError) -> [UInt8]? {
        let picture = try picture.scaled(
            longSide: self.settings.longSide * 3 / 4, shortSide: self.settings.shortSide * 3 / 4)
        // The bits that stills may take in one interval.
        let share = settings.stillsBitrate * Int(Self.stillInterval.wholeNanoseconds / 1_000_000) / 1_000
        var settings = VP8Encoder.Settings(
            width: picture.width, height: picture.height, framesPerSecond: 1, bitrate: share)
        settings.keyFrameShare = 100
        settings.isStrict = true
        return try VP8Encoder(settings).encode(picture, timestamp: 0, isKeyFrame: true)?.bytes
    }
}

extension Picture {
    /// Scales to fit both limits, whichever side is longer; never enlarges, keeps proportions, and makes both sides
    /// even.
    func scaled(longSide: Int, shortSide: Int) throws(CodecError) -> Picture {
        let (long, short) = (max(width, height), min(width, height))
        // The side that exceeds its limit by the larger factor determines the scale.
        let isLong = long * shortSide >= short * longSide
        let (limit, side) = isLong ? (longSide, long) : (shortSide, short)
        guard side > limit else {
            return try scaled(width: max(width & ~1, 16), height: max(height & ~1, 16))
        }
        func part(_ length: Int) -> Int { max((length * limit / side) & ~1, 16) }
        return try scaled(width: part(width), height: part(height))
    }
}
