import Base

/// One element of an encoded programme, in H.264 and AAC, as targets receive it.
package enum RestreamMedia: Equatable, Sendable {
    /// The format of the samples that follow.
    case format(RestreamFormat)
    /// A picture or a frame of sound.
    case sample(RestreamSample)
}

/// What decoders need before the first picture and the first frame of sound.
package struct RestreamFormat: Equatable, Sendable {
    /// Of the picture, in pixels.
    package let width: Int
    /// Of the picture, in pixels.
    package let height: Int
    /// Nil if pictures arrive at the publisher's own, possibly uneven rate.
    package let framesPerSecond: Int?
    /// H.264 parameter sets, with start codes (Annex B).
    package let pictureHeader: [UInt8]
    /// An AudioSpecificConfig.
    package let soundConfiguration: [UInt8]

    package init(
        width: Int, height: Int, framesPerSecond: Int?, pictureHeader: [UInt8], soundConfiguration: [UInt8]
    ) {
        self.width = width
        self.height = height
        self.framesPerSecond = framesPerSecond
        self.pictureHeader = pictureHeader
        self.soundConfiguration = soundConfiguration
    }
}

/// An encoded picture or frame of sound.
package struct RestreamSample: Equatable, Sendable {
    /// What the sample contains, and whether it depends on earlier samples.
    package enum Kind: Equatable, Sendable {
        /// A picture at which decoders can begin.
        case keyFrame
        /// A picture that refers to earlier pictures.
        case picture
        /// A frame of AAC; each can be decoded without the others.
        case sound
    }

    package let kind: Kind
    /// Counts all samples of one encoder, so that receivers detect gaps.
    package let number: UInt64
    /// When the sample is shown or heard.
    package let time: MonotonicTime
    /// A picture with start codes, or a frame of AAC without an ADTS header.
    package let bytes: [UInt8]

    package init(kind: Kind, number: UInt64, time: MonotonicTime, bytes: [UInt8]) {
        self.kind = kind
        self.number = number
        self.time = time
        self.bytes = bytes
    }
}
