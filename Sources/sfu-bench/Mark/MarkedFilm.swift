import Base
import Codecs
import Restream

/// Generates a moving picture that contains the time as a mark, and a tone, as H.264 and AAC.
///
/// Everything is made when it is due, so that the mark has the time at which a camera would have captured it.
final class MarkedFilm {
    /// In pixels; the height is 18 cells of `PictureMark`, of an even size.
    static let (width, height) = (640, 360)

    let format: RestreamFormat
    private let framesPerSecond: Int
    /// In pictures.
    private let keyFrameDistance: Int
    /// What does not move, drawn once.
    private let background: Picture
    private let encoder: H264Encoder
    /// Nil for a film without sound.
    private let soundEncoder: AACEncoder?
    /// The time of the first picture.
    private let zero: MonotonicTime
    /// Pictures and frames of sound that were begun.
    private var pictures: Int64 = 0
    private var sounds: Int64 = 0
    /// Of the latest sample; samples of both kinds are numbered together.
    private var number: UInt64 = 0
    /// Key frames that the encoder returned.
    private(set) var keyFrames = 0
    private(set) var frames = 0

    /// In hertz.
    private static let tone = 440
    private static let loudness: Float = 0.1

    /// - Parameters:
    ///   - keyFrameInterval: in seconds.
    ///   - zero: the time of the first picture.
    init(_ media: MediaOptions, keyFrameInterval: Double, from zero: MonotonicTime) throws {
        self.zero = zero
        framesPerSecond = media.framesPerSecond
        keyFrameDistance = max(Int((keyFrameInterval * Double(media.framesPerSecond)).rounded()), 1)
        encoder = try H264Encoder(
            width: Self.width, height: Self.height, framesPerSecond: media.framesPerSecond,
            bitrate: media.bitrate)
        soundEncoder = media.audioBitrate > 0 ? try AACEncoder(bitrate: media.audioBitrate) : nil
        // The format always describes sound; without any it says AAC-LC, 48 kHz, two channels.
        format = RestreamFormat(
            width: Self.width, height: Self.height, framesPerSecond: media.framesPerSecond,
            pictureHeader: encoder.header, soundConfiguration: soundEncoder?.configuration ?? [0x11, 0x90])
        var picture = try Picture(width: Self.width, height: Self.height, luma: 60, u: 140, v: 110)
        for column in 0..<16 {
            let light = DrawingColor(luma: UInt8(40 + 10 * column), u: UInt8(160 - 4 * column), v: 118)
            picture.fill(x: column * 40, y: 160, width: 40, height: 120, with: light)
        }
        background = picture
    }

    /// When the next picture or frame of sound is due.
    var due: MonotonicTime { soundEncoder == nil ? pictureDue : min(pictureDue, soundDue) }

    private var pictureDue: MonotonicTime { at(pictures * 1_000_000_000 / Int64(framesPerSecond)) }

    /// A frame of sound is due when its last sample is; a sample at 48 kHz lasts 125,000 / 6 ns.
    private var soundDue: MonotonicTime { at((sounds + 1) * Int64(AACEncoder.frames) * 125_000 / 6) }

    private func at(_ nanoseconds: Int64) -> MonotonicTime { zero.advanced(byNanoseconds: nanoseconds) }

    /// Makes the picture or the sound that is due next.
    /// - Parameter clock: converts a moment into nanoseconds since 1970, for the mark.
    /// - Returns: nil if the encoder has no output yet.
    func next(_ clock: (MonotonicTime) -> Int64) throws(CodecError) -> RestreamSample? {
        guard soundEncoder == nil || pictureDue <= soundDue else { return try nextSound() }
        let time = pictureDue
        var picture = background
        let place = Int(pictures * 4 % Int64(Self.width - 80))
        picture.fill(x: place, y: 180, width: 80, height: 80, with: .white)
        PictureMark(nanoseconds: clock(time)).draw(on: &picture)
        let wantsKeyFrame = pictures % Int64(keyFrameDistance) == 0
        pictures += 1
        guard let frame = try encoder.encode(picture, isKeyFrame: wantsKeyFrame) else { return nil }
        frames += 1
        if frame.isKeyFrame { keyFrames += 1 }
        return sample(frame.isKeyFrame ? .keyFrame : .picture, at: time, frame.bytes)
    }

    private func nextSound() throws(CodecError) -> RestreamSample? {
        let start = sounds * Int64(AACEncoder.frames)
        // The encoder is one frame behind: its output is the sound of the previous frame.
        let time = at((start - Int64(AACEncoder.frames)) * 125_000 / 6)
        sounds += 1
        var samples: [Float] = []
        samples.reserveCapacity(AACEncoder.frames * OpusDecoder.channels)
        for index in 0..<Int64(AACEncoder.frames) {
            // A triangle wave, which is cheaper than a sine.
            let phase = Float((start + index) * Int64(Self.tone) % 48_000) / 48_000
            let value = (abs(phase * 4 - 2) - 1) * Self.loudness
            samples.append(value)
            samples.append(value)
        }
        guard let frame = try soundEncoder?.encode(samples) else { return nil }
        return sample(.sound, at: time, frame)
    }

    private func sample(_ kind: RestreamSample.Kind, at time: MonotonicTime, _ bytes: [UInt8])
        -> RestreamSample
    {
        number += 1
        return RestreamSample(kind: kind, number: number, time: time, bytes: bytes)
    }
}
