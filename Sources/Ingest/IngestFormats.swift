import Wire

/// What a publisher sends, as it is known when its session begins.
package struct IngestFormats: Equatable, Sendable {
    /// Of the pictures; nil where there are none.
    package let codec: VideoCodec?
    /// Whether there is sound, which is AAC.
    package let hasAudio: Bool
    /// Nil without a picture, and where its size is not told.
    package let resolution: VideoResolution?
    /// As the codec numbers them, such as `profile_idc`; nil without a picture.
    package let profile: UInt8?
    /// Nil for a picture that goes on as it is.
    package let conversion: IngestConversion?
    /// In hertz; nil without sound.
    package let sampleRate: Int?
    /// Of the sound; 0 where it is not told.
    package let channels: Int?

    /// Whether there are pictures.
    package var hasVideo: Bool { codec != nil }

    init(
        video: IngestVideo?, resolution: VideoResolution?, audio: AACConfiguration?,
        conversion: IngestConversion?
    ) {
        codec = video?.codec
        hasAudio = audio != nil
        self.resolution = resolution
        profile = video?.profile
        self.conversion = conversion
        sampleRate = audio?.sampleRate
        channels = audio?.channels
    }
}
