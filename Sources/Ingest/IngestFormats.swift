import Wire

/// What a publisher sends, as far as it is known when its session begins.
package struct IngestFormats: Equatable, Sendable {
    /// The video codec; nil without video.
    package let codec: VideoCodec?
    /// Whether there is sound, which is always AAC.
    package let hasAudio: Bool
    /// Nil without video, and while no configuration or picture contained the size.
    package let resolution: VideoResolution?
    /// The profile in the codec's own numbering, such as `profile_idc`; nil without video.
    package let profile: UInt8?
    /// Nil for pictures that are passed on unchanged.
    package let conversion: IngestConversion?
    /// In hertz; nil without sound.
    package let sampleRate: Int?
    /// Of the sound; nil without sound, and 0 if the configuration does not contain the number.
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
