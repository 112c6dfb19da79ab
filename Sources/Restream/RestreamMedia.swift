import Base

/// What an encoder made of a programme: one element of H.264 and AAC.
package enum RestreamMedia: Equatable, Sendable {
    /// What follows is of this kind.
    case format(RestreamFormat)
    case sample(RestreamSample)
}

/// What decoders have to know before the first picture and the first sound.
package struct RestreamFormat: Equatable, Sendable {
    /// In pixels.
    package let width: Int
    package let height: Int
    /// Nil where pictures come as they like.
    package let framesPerSecond: Int?
    /// Parameter sets of H.264, with start codes.
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

/// A picture or a frame of sound.
package struct RestreamSample: Equatable, Sendable {
    package enum Kind: Equatable, Sendable {
        case keyFrame
        /// A picture that needs those before it.
        case picture
        case sound
    }

    package let kind: Kind
    /// Counts all samples of one encoder, so that a gap is seen.
    package let number: UInt64
    /// When it is shown or heard.
    package let time: MonotonicTime
    /// A picture with start codes, or a frame of AAC without a header.
    package let bytes: [UInt8]

    package init(kind: Kind, number: UInt64, time: MonotonicTime, bytes: [UInt8]) {
        self.kind = kind
        self.number = number
        self.time = time
        self.bytes = bytes
    }
}
