import Base
import ClientPeer
import Wire

/// One RTP payload of video.
struct MediaPacket: Sendable {
    var payload: [UInt8]
    /// In ticks of 90 kHz.
    let timestamp: UInt32
    let marker: Bool
    let isKeyFrame: Bool
    /// Where in the payload the time of departure is written; nil in recorded media, which is sent unchanged.
    let stampOffset: Int?
    /// When the frame was due.
    var captured = MonotonicTime.zero
    /// The simulcast layer; 0 is the best one.
    var layer = 0
}

/// The source of a publisher's video: synthetic frames, or a file that repeats.
struct VideoSource {
    private enum Origin {
        case synthetic(SyntheticVideo)
        case recorded(RecordedVideo.Player)
    }

    private var origin: Origin
    /// In bits a second; the mean of a recording.
    let bitrate: Int
    /// In nanoseconds.
    let frameInterval: Int64

    /// - Parameter layer: each layer has half the width and height of the one before, and a third of its bitrate.
    /// - Returns: nil if the settings ask for no video.
    init?(_ settings: PublisherSettings, layer: Int, using random: inout some RandomNumberGenerator) {
        if let recording = settings.recordedVideo {
            origin = .recorded(recording.player(using: &random))
            bitrate = recording.bitrate
            frameInterval = recording.frameInterval
            return
        }
        guard settings.media.bitrate > 0 else { return nil }
        var synthetic = SyntheticVideo.Settings()
        synthetic.bitrate = settings.media.bitrate
        synthetic.width >>= layer
        synthetic.height >>= layer
        for _ in 0..<layer { synthetic.bitrate /= 3 }
        synthetic.framesPerSecond = settings.media.framesPerSecond
        let video = SyntheticVideo(synthetic, using: &random)
        origin = .synthetic(video)
        bitrate = synthetic.bitrate
        frameInterval = video.frameInterval.wholeNanoseconds
    }

    /// Makes the next frame a key frame; a recording jumps to one.
    mutating func requestKeyFrame() {
        switch origin {
        case .synthetic(var video):
            video.requestKeyFrame()
            origin = .synthetic(video)
        case .recorded(var player):
            player.requestKeyFrame()
            origin = .recorded(player)
        }
    }

    /// The packets of the next frame, in order; the caller determines the time.
    mutating func nextFrame() -> [MediaPacket] {
        switch origin {
        case .synthetic(var video):
            defer { origin = .synthetic(video) }
            return video.nextFrame().map { packet in
                MediaPacket(
                    payload: packet.payload, timestamp: packet.timestamp, marker: packet.marker,
                    isKeyFrame: packet.isKeyFrame,
                    stampOffset: try? MediaStamp.offset(inVideo: packet.payload.span))
            }
        case .recorded(var player):
            defer { origin = .recorded(player) }
            return player.nextFrame()
        }
    }
}

/// The source of a publisher's audio: synthetic packets, or a file that repeats.
struct AudioSource {
    /// Names the stream in synthetic packets.
    private let tag: StreamTag

    private enum Origin {
        case synthetic(SyntheticAudio)
        case recorded(RecordedAudio.Player)
    }

    private var origin: Origin
    /// Of the next packet, in ticks of 48 kHz; random at first (RFC 3550 §5.1).
    private var timestamp: UInt32
    /// In nanoseconds.
    let packetInterval: Int64

    /// - Returns: nil if the settings ask for no audio.
    init?(_ settings: PublisherSettings, using random: inout some RandomNumberGenerator) {
        timestamp = UInt32.random(in: 0...UInt32.max, using: &random)
        tag = StreamTag(stream: settings.stream)
        if let recording = settings.recordedAudio {
            origin = .recorded(recording.player())
            packetInterval = recording.packetInterval
            return
        }
        guard settings.media.audioBitrate > 0 else { return nil }
        origin = .synthetic(SyntheticAudio(bitrate: settings.media.audioBitrate))
        packetInterval = Int64(SyntheticAudio.packetMilliseconds) * 1_000_000
    }

    /// The payload of the next Opus packet.
    ///
    /// Synthetic payloads contain the time of departure, the stream's tag and the time of capture, in this order.
    /// - Parameter captured: when the packet was due.
    mutating func nextPacket(captured: MonotonicTime, at now: MonotonicTime) -> (
        payload: [UInt8], timestamp: UInt32
    ) {
        // Nanoseconds to ticks of 48 kHz.
        defer { timestamp &+= UInt32(packetInterval * 48 / 1_000_000) }
        switch origin {
        case .synthetic(let audio):
            var payload = audio.payload
            MediaStamp(now).write(to: &payload, at: audio.stampOffset)
            let offset = audio.stampOffset + StreamTag.offsetInAudio
            tag.write(to: &payload, at: offset)
            MediaStamp(captured).write(to: &payload, at: offset + StreamTag.toCapture)
            return (payload, timestamp)
        case .recorded(var player):
            defer { origin = .recorded(player) }
            return (player.next(), timestamp)
        }
    }
}
