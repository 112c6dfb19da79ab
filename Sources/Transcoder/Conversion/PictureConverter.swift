import Base
import Codecs
import Wire

/// Decodes frames that may be shown in another order than they come; a library, or a test's stand-in.
protocol ReorderingDecoder: AnyObject {
    /// Nil while nothing can be shown; the time stamp is that of the frame which is.
    func decode(
        _ frame: [UInt8], timestamp: Int64
    ) throws(CodecError) -> (picture: Picture, timestamp: Int64)?
}

extension VideoDecoder: ReorderingDecoder {}

/// Makes VP8 of a publisher's pictures that browsers do not show: packets in as they come, packets out in the order in
/// which they are shown.
///
/// Time stamps and capture times stay, so that sound stays with the picture. Who falls behind decodes all and encodes
/// less: pictures become fewer, not later. Pure: time is a parameter.
final class PictureConverter {
    /// Of what is made, in pixels; a smaller picture stays as it is.
    static let (longSide, shortSide) = (1_280, 720)
    /// Between two key frames, whoever asks: each takes much of the bit rate.
    static let shortestKeyFrameInterval = Duration.milliseconds(500)
    /// Frames that came longer ago are only decoded.
    static let latenessLimit = Duration.milliseconds(500)
    /// Frames in a row that show nothing, after which nothing is hoped for.
    static let failureLimit = 300
    /// More pictures than these are left out, in ticks of 90 kHz: 30 a second that do not come evenly.
    private static let shortestStep: Int64 = 2_700
    private static let framesPerSecond = 30
    /// Frames that a decoder may hold back: four times what H.264 allows.
    private static let waitingLimit = 64

    private struct Waiting {
        let timestamp: Int64
        let captured: MonotonicTime
        let arrival: MonotonicTime
    }

    private let makeDecoder: (VideoCodec) -> (any ReorderingDecoder)?
    private var assembler = FrameAssembler()
    private var clock = MediaClock(rate: 90_000)
    /// Nil before a key frame, and after a failure.
    private var decoder: (any ReorderingDecoder)?
    /// In the decoder, the earliest first.
    private var waiting: [Waiting] = []
    private var encoder: VP8Encoder?
    private var packets: PacketMaker
    private var isKeyFrameWanted = true
    private var isHigherNext = false
    private var lastKeyFrame: MonotonicTime?
    /// Of the latest picture that was encoded.
    private var lastTicks: Int64?
    private var failures = 0

    /// - Parameters:
    ///   - seed: sets SSRC and first numbers; another one for each life of a converter.
    ///   - makeDecoder: what libraries do for it, or a test; nil of a codec for which there is none.
    init(seed: UInt64, makeDecoder: @escaping (VideoCodec) -> (any ReorderingDecoder)?) {
        packets = PacketMaker(seed: seed, kind: .video)
        self.makeDecoder = makeDecoder
    }

    /// Whether so much could not be decoded that nothing will be.
    var isHopeless: Bool { failures >= Self.failureLimit }

    /// Somebody cannot begin, or go on, without a key frame.
    func requestKeyFrame() { isKeyFrameWanted = true }

    /// Takes a packet in.
    /// - Returns: the packets of the pictures that can be shown with it.
    func receive(_ packet: InputPacket, at now: MonotonicTime) -> [OutputPacket] {
        assembler.insert(packet, at: now).flatMap { show($0, at: now) }
    }

    /// Gives up what is missing for too long.
    func advance(to now: MonotonicTime) -> [OutputPacket] {
        assembler.advance(to: now).flatMap { show($0, at: now) }
    }

    private func show(_ frame: AssembledFrame, at now: MonotonicTime) -> [OutputPacket] {
        if frame.isKeyFrame {
            // Viewers can begin wherever they could with what was sent.
            isKeyFrameWanted = true
            decoder = decoder ?? makeDecoder(frame.codec)
            // Another frame would change nothing.
            if decoder == nil { failures = Self.failureLimit }
        }
        guard let decoder else { return [] }
        let timestamp = clock.extend(frame.timestamp)
        waiting.append(
            Waiting(
                timestamp: timestamp, captured: frame.captured ?? frame.arrival, arrival: frame.arrival))
        if waiting.count > Self.waitingLimit { waiting.removeFirst() }
        failures += 1
        do throws(CodecError) {
            guard let (picture, shown) = try decoder.decode(frame.bytes, timestamp: timestamp),
                let index = waiting.firstIndex(where: { $0.timestamp == shown })
            else { return [] }
            failures = 0
            let origin = waiting.remove(at: index)
            return try encode(picture, of: origin, latest: frame.arrival, at: now)
        } catch {
            self.decoder = nil
            waiting.removeAll()
            return []
        }
    }

    private func encode(
        _ picture: Picture, of origin: Waiting, latest: MonotonicTime, at now: MonotonicTime
    ) throws(CodecError) -> [OutputPacket] {
        let ticks = origin.timestamp
        if let lastTicks, ticks - lastTicks < Self.shortestStep { return [] }
        guard now - latest < Self.latenessLimit else { return [] }
        let picture = try picture.scaled(longSide: Self.longSide, shortSide: Self.shortSide).asVideo()
        if (encoder?.settings.width, encoder?.settings.height) != (picture.width, picture.height) {
            encoder = try VP8Encoder(Self.settings(width: picture.width, height: picture.height))
            lastKeyFrame = nil
        }
        let mayRefresh = lastKeyFrame.map { now >= $0 + Self.shortestKeyFrameInterval } ?? true
        let isKeyFrame = lastKeyFrame == nil || isKeyFrameWanted && mayRefresh
        let isInHigherLayer = isHigherNext && !isKeyFrame
        lastTicks = ticks
        guard
            let frame = try encoder?.encode(
                picture, timestamp: ticks, isKeyFrame: isKeyFrame, isInHigherLayer: isInHigherLayer)
        else { return [] }
        if frame.isKeyFrame {
            lastKeyFrame = now
            isKeyFrameWanted = false
        }
        isHigherNext = !isInHigherLayer
        return packets.vp8(
            frame.bytes, timestamp: UInt32(truncatingIfNeeded: ticks),
            isInHigherLayer: isInHigherLayer && !frame.isKeyFrame
        ).map { OutputPacket(source: 0, layer: 0, captured: origin.captured, bytes: $0) }
    }

    /// Two megabits a second at 1280x720, and less for less, down to 400 kbit/s.
    private static func settings(width: Int, height: Int) -> VP8Encoder.Settings {
        var settings = VP8Encoder.Settings(
            width: width, height: height, framesPerSecond: framesPerSecond,
            bitrate: max(width * height * 9 / 4, 400_000))
        settings.threads = width * height > 640 * 480 ? 2 : 1
        settings.speed = 10
        settings.lowerLayerShare = 60
        return settings
    }
}
