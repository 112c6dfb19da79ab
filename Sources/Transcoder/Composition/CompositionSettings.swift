/// How a composed programme looks.
package struct CompositionSettings: Equatable, Sendable, Codable {
    /// How the places are shared out.
    package enum Layout: String, Equatable, Sendable, Codable, CaseIterable {
        /// Everybody as large as everybody else.
        case grid
        /// Whoever spoke last large, the others small beside.
        case spotlight
    }

    /// Of the picture, in pixels; even.
    package var width = 1_280
    /// Of the picture, in pixels; even.
    package var height = 720
    /// Aimed at; less is made where there is no time.
    package var framesPerSecond = 30
    /// Of the video, in bits a second.
    package var bitrate = 2_000_000
    /// May change while the composition goes on.
    package var layout = Layout.grid
    /// What lies behind the pictures, as 0xRRGGBB.
    package var background: UInt32 = 0x15_1A_22

    package init() {}
}

/// Who is on stage, as composing has to know it.
package struct CompositionSpeaker: Equatable, Sendable, Codable {
    /// Names a place in the picture; the same as long as the same picture is meant.
    package var id: String
    /// What the label says.
    package var name: String
    /// The inputs that feed picture and voice.
    package var video: UInt64?
    /// Nil for somebody who sends no sound.
    package var audio: UInt64?
    /// Whether the camera is on; a card stands for one that is off.
    package var hasPicture = true
    /// Marked by a frame around the picture.
    package var isSpeaking = false
    /// A shared screen, shown whole rather than cut to its place.
    package var isScreen = false
    /// Whoever came first stands first.
    package var arrival = 0

    package init(id: String, name: String) {
        self.id = id
        self.name = name
    }
}

/// All that a composition has to know of a stage at one moment.
package struct CompositionScene: Equatable, Sendable, Codable {
    /// How the picture is to look from now on.
    package var settings: CompositionSettings
    /// Who spoke last comes first.
    package var speakers: [CompositionSpeaker]

    package init(settings: CompositionSettings, speakers: [CompositionSpeaker]) {
        self.settings = settings
        self.speakers = speakers
    }
}
