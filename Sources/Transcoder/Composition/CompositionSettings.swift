/// The look and the cost of a composed programme.
package struct CompositionSettings: Equatable, Sendable, Codable {
    /// The arrangement of the tiles.
    package enum Layout: String, Equatable, Sendable, Codable, CaseIterable {
        /// All tiles have the same size.
        case grid
        /// The last speaker is large, the others small beside.
        case spotlight
    }

    /// Of the picture, in pixels; even.
    package var width = 1_280
    /// Of the picture, in pixels; even.
    package var height = 720
    /// Target rate; lower under load.
    package var framesPerSecond = 30
    /// Of the video, in bits per second.
    package var bitrate = 2_000_000
    /// Can be changed during the composition.
    package var layout = Layout.grid
    /// Color behind the tiles, as 0xRRGGBB.
    package var background: UInt32 = 0x15_1A_22

    package init() {}
}

/// A person on stage, as a composition sees them.
package struct CompositionSpeaker: Equatable, Sendable, Codable {
    /// Identifies a tile; stays the same for the same picture.
    package var id: String
    /// Text of the label.
    package var name: String
    /// Number of the video input; nil without one.
    package var video: UInt64?
    /// Number of the audio input; nil without one.
    package var audio: UInt64?
    /// Whether the camera is on; otherwise a card is shown.
    package var hasPicture = true
    /// Whether to draw a frame around the tile.
    package var isSpeaking = false
    /// Whether this is a shared screen, which is shown whole and not cropped to its tile.
    package var isScreen = false
    /// Rank of arrival: lower ranks have earlier tiles.
    package var arrival = 0

    package init(id: String, name: String) {
        self.id = id
        self.name = name
    }
}

/// The stage at one moment, as far as a composition needs it.
package struct CompositionScene: Equatable, Sendable, Codable {
    /// The look from now on.
    package var settings: CompositionSettings
    /// Ordered by who spoke last, the latest first.
    package var speakers: [CompositionSpeaker]

    package init(settings: CompositionSettings, speakers: [CompositionSpeaker]) {
        self.settings = settings
        self.speakers = speakers
    }
}
