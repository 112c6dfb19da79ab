import Base
import Codecs
import Wire

/// Decodes frames whose display order may differ from their order of arrival; implemented by the libraries, and by
/// stubs in tests.
protocol ReorderingDecoder: AnyObject {
    /// Decodes a frame; nil if no picture can be shown yet.
    ///
    /// The time stamp is that of the frame which is shown.
    func decode(
        _ frame: [UInt8], timestamp: Int64
    ) throws(CodecError) -> (picture: Picture, timestamp: Int64)?
}

extension VideoDecoder: ReorderingDecoder {}

/// Re-encodes a publisher's pictures as VP8: accepts packets as they arrive, and returns packets in display order.
///
/// RTP and capture times are kept, so that sound remains in sync. A converter that falls behind decodes everything but
/// encodes less: there are fewer pictures, and they are not late. Pure: time is a parameter.
final class PictureConverter {
    /// Largest size of the output, in pixels; smaller pictures keep their size.
    static let (longSide, shortSide) = (1_280, 720)
    /// Shortest distance of key frames, regardless of requests: each takes a large part of the bit rate.
    static let shortestKeyFrameInterval = Duration.milliseconds(500)
    /// Age at which frames are only decoded and no longer encoded.
    static let latenessLimit = Duration.milliseconds(500)
    /// Consecutive frames without a picture after which the converter gives up.
    static let failureLimit = 300
    /// Shortest distance of encoded pictures, in ticks of 90 kHz: slightly below that of 30 per second, because they
    /// do not arrive evenly.
    private static let shortestStep: Int64 = 2_700
    private static let framesPerSecond = 30
    /// Most frames that a decoder may hold back: four times what H.264 permits.
    private static let waitingLimit = 64

    /// The times of a frame that the decoder may still return.
    private struct Waiting {
        let timestamp: Int64
        let captured: MonotonicTime
        let arrival: MonotonicTime
    }

    /// Nil for a codec that cannot be decoded.
    private let makeDecoder: (VideoCodec) -> (any ReorderingDecoder)?
    private var assembler = FrameAssembler()
    private var clock = MediaClock(rate: 90_000)
    /// Nil before the first key frame, and after a failure.
    private var decoder: (codec: VideoCodec, decoder: any ReorderingDecoder)?
    /// Frames inside the decoder, the earliest first.
    private var waiting: [Waiting] = []
    private var encoder: VP8Encoder?
    private var packets: PacketMaker
    private var isKeyFrameWanted = true
    /// Whether the next picture belongs to the higher temporal layer.
    private var isHigherNext = false
    private var lastKeyFrame: MonotonicTime?
    /// Time stamp of the latest encoded picture; nil before the first.
    private var lastTicks: Int64?
    /// Frames since the last picture.
    private var failures = 0

    /// - Parameters:
    ///   - seed: determines SSRC and first sequence numbers; different for each life of a converter.
    ///   - makeDecoder: creates decoders; nil for a codec that cannot be decoded.
    init(seed: UInt64, makeDecoder: @escaping (VideoCodec) -> (any ReorderingDecoder)?) {
        packets = PacketMaker(seed: seed, kind: .video)
        self.makeDecoder = makeDecoder
    }

    /// Whether the converter has given up, because nothing can be decoded.
    var isHopeless: Bool { failures >= Self.failureLimit }

    /// Requests a key frame for a viewer who cannot begin or continue without one.
    func requestKeyFrame() { isKeyFrameWanted = true }

    /// Processes a packet.
    /// - Returns: the packets of pictures that can be shown now.
    func receive(_ packet: InputPacket, at now: MonotonicTime) -> [OutputPacket] {
        assembler.insert(packet, at: now).flatMap { show($0, at: now) }
    }

    /// Gives up frames that have been incomplete for too long.
    func advance(to now: MonotonicTime) -> [OutputPacket] {
        assembler.advance(to: now).flatMap { show($0, at: now) }
    }

    /// Decodes a frame, and encodes the picture that can be shown after it.
    private func show(_ frame: AssembledFrame, at now: MonotonicTime) -> [OutputPacket] {
        if frame.isKeyFrame {
            // Viewers can then begin at the same pictures as in the publisher's stream.
            isKeyFrameWanted = true
            if decoder?.codec != frame.codec {
                // A publisher may change the codec. Pictures that the other decoder held back are lost with it.
                decoder = makeDecoder(frame.codec).map { (frame.codec, $0) }
                waiting.removeAll()
            }
            // Without a decoder further frames cannot help.
            if decoder == nil { failures = Self.failureLimit }
        }
        guard let decoder, decoder.codec == frame.codec else { return [] }
        let timestamp = clock.extend(frame.timestamp)
        waiting.append(
            Waiting(
                timestamp: timestamp, captured: frame.captured ?? frame.arrival, arrival: frame.arrival))
        if waiting.count > Self.waitingLimit { waiting.removeFirst() }
        failures += 1
        do throws(CodecError) {
            guard let (picture, shown) = try decoder.decoder.decode(frame.bytes, timestamp: timestamp),
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

    /// Encodes a picture, unless it follows the last one too closely or encoding is behind.
    /// - Parameters:
    ///   - origin: the frame that this picture shows.
    ///   - latest: arrival of the frame decoded last.
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

    /// Two megabits per second at 1280x720, proportionally less for fewer pixels, but at least 400 kbit/s.
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
