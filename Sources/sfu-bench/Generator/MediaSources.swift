import Base
import ClientPeer
import Wire

/// One RTP payload of video.
struct MediaPacket: Sendable {
    var payload: [UInt8]
    /// 90 kHz.
    let timestamp: UInt32
    let marker: Bool
    let isKeyFrame: Bool
    /// Where the packet takes the time it leaves; nil in a recording, which stays as it is.
    let stampOffset: Int?
    var captured = MonotonicTime.zero
    /// Of simulcast; the best one is 0.
    var layer = 0
}

/// Where a publisher's video comes from.
struct VideoSource {
    private enum Origin {
        case synthetic(SyntheticVideo)
        case recorded(RecordedVideo.Player)
    }

    private var origin: Origin
    /// In bits a second; of a recording, its mean.
    let bitrate: Int
    /// In nanoseconds.
    let frameInterval: Int64

    /// - Parameter layer: each is half as wide and high as the one before, with a third of its bits.
    /// - Returns: nil if no video is wanted.
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

/// Where a publisher's audio comes from.
struct AudioSource {
    /// What synthetic packets name as their stream.
    private let tag: StreamTag

    private enum Origin {
        case synthetic(SyntheticAudio)
        case recorded(RecordedAudio.Player)
    }

    private var origin: Origin
    private var timestamp: UInt32
    /// In nanoseconds.
    let packetInterval: Int64

    /// - Returns: nil if no audio is wanted.
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

    mutating func nextPacket(captured: MonotonicTime, at now: MonotonicTime) -> (
        payload: [UInt8], timestamp: UInt32
    ) {
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
