/// What a viewer wants of the pictures, whatever the path to them takes.
package struct DeliveryPreferences: Equatable, Sendable {
    /// One of the layers that a picture is to be had in, and never another.
    package enum Pin: String, CaseIterable, Sendable {
        /// The best that they may have. Where the path does not take it there is no picture, rather than a worse one.
        case high
        /// The least there is: for those who pay by the byte.
        case low
    }

    /// Of the shorter side of a picture, in pixels; nil for no limit.
    package var maximumHeight: Int?
    package var pin: Pin?
    /// Whether no pictures are sent at all.
    package var isAudioOnly = false

    package init(maximumHeight: Int? = nil, pin: Pin? = nil, isAudioOnly: Bool = false) {
        self.maximumHeight = maximumHeight
        self.pin = pin
        self.isAudioOnly = isAudioOnly
    }

    /// Whether a viewer left everything to the server.
    package var isAutomatic: Bool { self == DeliveryPreferences() }
}

/// Which of a track's layers somebody may get.
struct LayerChoice: Equatable {
    /// Of the shorter side of a picture, in pixels; nil for no limit.
    var maximumHeight: Int?
    /// Whether only the least will do.
    var isLeast = false
    /// Whether another than the best of these is as good as none.
    var isOnlyBest = false
}
