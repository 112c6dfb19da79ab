/// What a viewer wants of the pictures, regardless of what the path can carry.
package struct DeliveryPreferences: Equatable, Sendable {
    /// A single layer that the viewer accepts, and no other.
    package enum Pin: String, CaseIterable, Sendable {
        /// The best available layer. If the path cannot carry it, no picture is sent, rather than a worse one.
        case high
        /// The lowest available layer, for viewers who pay for traffic.
        case low
    }

    /// Maximum length of a picture's shorter side, in pixels; nil for no limit.
    package var maximumHeight: Int?
    /// Nil if the layer follows the path.
    package var pin: Pin?
    /// Whether the viewer wants audio alone.
    package var isAudioOnly = false

    package init(maximumHeight: Int? = nil, pin: Pin? = nil, isAudioOnly: Bool = false) {
        self.maximumHeight = maximumHeight
        self.pin = pin
        self.isAudioOnly = isAudioOnly
    }

    /// Whether the viewer leaves every choice to the server.
    package var isAutomatic: Bool { self == DeliveryPreferences() }
}

/// Which of a track's layers a slot may get.
struct LayerChoice: Equatable {
    /// Maximum length of a picture's shorter side, in pixels; nil for no limit.
    var maximumHeight: Int?
    /// Whether only the lowest layer may be sent.
    var isLeast = false
    /// Whether only the best of the allowed layers may be sent.
    var isOnlyBest = false
}
