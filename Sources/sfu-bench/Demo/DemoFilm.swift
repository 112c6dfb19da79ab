import Codecs

/// The picture and sound of a show, encoded once and sent in a loop.
struct DemoFilm: Sendable {
    let video: RecordedVideo
    let audio: RecordedAudio

    /// Length of the loop.
    static let seconds = 6
    static let framesPerSecond = 20
    /// In frames: a key frame every two seconds, so that a joining viewer need not wait for one.
    private static let keyFrameDistance = 2 * framesPerSecond
    /// In bits a second.
    private static let videoBitrate = 700_000
    private static let audioBitrate = 48_000

    init(_ show: DemoShow) throws {
        video = try Self.video(show.scene)
        audio = try Self.audio(show.sound)
    }

    private static func video(_ scene: DemoScene) throws -> RecordedVideo {
        var settings = VP8Encoder.Settings(
            width: DemoScene.width, height: DemoScene.height, framesPerSecond: framesPerSecond,
            bitrate: videoBitrate)
        // Slower and better than the default of 8: the films are encoded only once.
        settings.speed = 6
        let encoder = try VP8Encoder(settings)
        let count = seconds * framesPerSecond
        let frames = try (0..<count).compactMap { number -> RecordedVideo.Frame? in
            let picture = try scene.picture(at: Double(number) / Double(count))
            let frame = try encoder.encode(
                picture, timestamp: Int64(number * 90_000 / framesPerSecond),
                isKeyFrame: number.isMultiple(of: keyFrameDistance))
            return frame.map { RecordedVideo.Frame(bytes: $0.bytes, isKeyFrame: $0.isKeyFrame) }
        }
        return try RecordedVideo(frames, interval: Int64(1_000_000_000 / framesPerSecond))
    }

    private static func audio(_ sound: DemoSound) throws -> RecordedAudio {
        let encoder = try OpusEncoder(bitrate: audioBitrate)
        let samples = sound.samples(seconds: seconds)
        let length = OpusEncoder.frames * OpusDecoder.channels
        return try RecordedAudio(
            packets: try stride(from: 0, to: samples.count - length + 1, by: length).map { start in
                try encoder.encode(Array(samples[start..<(start + length)]))
            })
    }
}
