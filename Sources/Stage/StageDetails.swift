import Base

/// A stream's settings, which its host chooses and may change.
package struct StageDetails: Equatable, Sendable, Codable {
    /// What viewers see and hear.
    package enum Programme: String, Sendable, Codable, CaseIterable {
        case host
        /// The participant who speaks.
        case activeSpeaker = "active-speaker"
        /// Everyone on stage, in one picture.
        case composed
    }

    /// Parts of the web client's pages that can be switched off.
    package enum Layer: String, Sendable, Codable, CaseIterable {
        case background, player, movable, lite, float
    }

    /// How a composed programme looks.
    package struct Composition: Equatable, Sendable, Codable {
        /// How the picture is divided.
        package enum Layout: String, Sendable, Codable, CaseIterable {
            /// All pictures of the same size.
            case grid
            /// The participant who spoke last large, the others small beside.
            case spotlight
        }

        /// The color behind the pictures.
        package struct Color: Equatable, Sendable, Codable {
            /// The color as 0xRRGGBB.
            package let rgb: UInt32

            /// - Parameter rgb: only its low 24 bits are used.
            package init(rgb: UInt32) {
                self.rgb = rgb & 0xFF_FF_FF
            }

            /// Parses `#RRGGBB`.
            /// - Returns: nil for anything else.
            package init?(_ text: String) {
                let digits = text.utf8.dropFirst()
                guard text.utf8.first == UInt8(ascii: "#"), digits.count == 6,
                    digits.allSatisfy({ Character(UnicodeScalar($0)).isHexDigit }),
                    let rgb = UInt32(text.dropFirst(), radix: 16)
                else { return nil }
                self.rgb = rgb
            }

            /// The color as `#rrggbb`.
            package var text: String {
                let digits = String(rgb, radix: 16)
                return "#" + String(repeating: "0", count: 6 - digits.count) + digits
            }
        }

        /// Width of the picture in pixels; even.
        package var width = 1_280
        /// Height of the picture in pixels; even.
        package var height = 720
        /// Frame rate, within `rateRange`.
        package var framesPerSecond = 30
        /// Bit rate of the video, in bits a second.
        package var bitrate = 2_000_000
        /// How the picture is divided among the participants.
        package var layout = Layout.grid
        /// The color behind and between the pictures.
        package var background = Color(rgb: 0x15_1A_22)

        package init() {}

        /// Range of width and height, in pixels.
        package static let sideRange = 320...1_920
        /// Maximum number of pixels in a picture: the sides may not both be at their upper limit.
        package static let pixelLimit = 1_920 * 1_080
        /// Range of the frame rate, in frames a second.
        package static let rateRange = 5...30
        /// Range of the bit rate, in bits a second.
        package static let bitrateRange = 150_000...8_000_000

        var isValid: Bool {
            Self.sideRange.contains(width) && Self.sideRange.contains(height)
                && width.isMultiple(of: 2) && height.isMultiple(of: 2) && width * height <= Self.pixelLimit
                && Self.rateRange.contains(framesPerSecond) && Self.bitrateRange.contains(bitrate)
        }

        /// As the API shows it; requests contain the same members.
        package var json: JSON {
            .object([
                "width": .integer(width), "height": .integer(height), "fps": .integer(framesPerSecond),
                "bitrate": .integer(bitrate), "layout": .string(layout.rawValue),
                "background": .string(background.text),
            ])
        }
    }

    /// When the programme is recorded.
    package enum Recording: String, Sendable, Codable, CaseIterable {
        /// When the host starts it.
        case manual
        /// From the start of the stream, until it ends or the host stops it.
        case automatic
    }

    /// Who may make clips of the last minutes of the programme.
    package enum Clips: String, Sendable, Codable, CaseIterable {
        /// No one: the media for clips is not kept.
        case off
        /// The host and moderators.
        case moderators
        /// Every participant with a name.
        case everybody
    }

    /// Whether viewers may watch by HLS if WebRTC does not reach them, where the server makes HLS.
    package enum HLS: String, Sendable, Codable, CaseIterable {
        case on
        case off
    }

    /// How far the audience takes part in data tracks.
    package enum AudienceData: String, Sendable, Codable, CaseIterable {
        case nothing = "none"
        /// Viewers receive what the stage sends.
        case receive
        /// Viewers may send as well.
        case send
    }

    /// 1 to `titleLength` characters, none of them a control character.
    package var title: String?
    /// The announced start, for viewers.
    package var startsAt: WallTime?
    /// How long before `startsAt` viewers may come in, in seconds.
    package var joinAheadSeconds = 0
    /// How long a host may be away from a live stream before it ends, in seconds.
    package var hostGraceSeconds = 30
    /// What viewers see and hear.
    package var programme = Programme.host
    /// Nil for the default composition.
    package var composition: Composition?
    /// Nil, as in streams that are older than this setting, for the server's limit.
    private var guestLimit: Int?
    /// Maximum number of speakers beside the host, within `maxSpeakersRange`.
    ///
    /// A lower value removes no speaker who is on stage.
    package var maxSpeakers: Int {
        get { guestLimit ?? Self.maxSpeakersRange.upperBound }
        set { guestLimit = newValue }
    }
    /// Nil, as in streams that are older than this setting, for `manual`.
    package var recording: Recording?
    /// Nil, as in streams that are older than this setting, for `moderators`.
    package var clips: Clips?
    /// Nil, as in streams that are older than this setting, for `on`.
    package var hls: HLS?
    /// Nil, as in streams that are older than this setting, for 0.
    private var window: Int?
    /// How far viewers by HLS can go back, in seconds, within `dvrRange`, where the server keeps the media.
    package var dvrSeconds: Int {
        get { window ?? 0 }
        set { window = newValue }
    }
    /// Nil if every viewer who is let in gets the programme.
    package var gate: Gate?
    /// Nil, as in streams that are older than this setting, for `nothing`.
    package var audienceData: AudienceData?
    /// The parts that the pages show; they leave out all others.
    package var layers: [Layer] = Layer.allCases

    package init() {}

    /// Maximum length of a title, in characters.
    package static let titleLength = 200
    /// Range of `joinAheadSeconds`: at most a day.
    package static let joinAheadRange = 0...86_400
    /// From none, for a host who stays alone, to all that fit on a stage.
    package static let maxSpeakersRange = 0...Stage.stageLimit - 1
    /// Range of `dvrSeconds`: at most two hours.
    package static let dvrRange = 0...7_200
    /// Range of `hostGraceSeconds`: at most an hour.
    package static let hostGraceRange = 0...3_600

    /// When viewers may come in; nil if only going live opens the doors.
    package var admissionTime: WallTime? {
        startsAt?.advanced(bySeconds: -joinAheadSeconds)
    }

    /// Whether a text is valid as a title.
    package static func isTitle(_ text: String) -> Bool {
        (1...titleLength).contains(text.count) && text.utf8.count <= 4 * titleLength
            && text.unicodeScalars.allSatisfy { $0.properties.generalCategory != .control }
            && !text.holdsFormatting
    }

    /// Checks all fields.
    /// - Parameter startsAtIsNew: whether `startsAt` was just set; only then may it not lie in the past.
    /// - Throws: `.invalid`, naming the first field that is out of its range.
    func validate(at now: WallTime, startsAtIsNew: Bool) throws(Rejection) {
        if let title, !Self.isTitle(title) { throw .invalid("title") }
        guard Self.joinAheadRange.contains(joinAheadSeconds) else { throw .invalid("joinAheadSeconds") }
        guard Self.hostGraceRange.contains(hostGraceSeconds) else { throw .invalid("hostGraceSeconds") }
        guard Self.dvrRange.contains(dvrSeconds) else { throw .invalid("dvrSeconds") }
        guard Self.maxSpeakersRange.contains(maxSpeakers) else { throw .invalid("maxSpeakers") }
        guard composition?.isValid ?? true else { throw .invalid("composition") }
        guard gate?.isValid ?? true else { throw .invalid("gate") }
        guard layers.count <= Layer.allCases.count, Set(layers).count == layers.count else {
            throw .invalid("layers")
        }
        if startsAtIsNew, let startsAt {
            // One minute of tolerance, for slow forms and differing clocks.
            guard startsAt.advanced(bySeconds: 60) >= now, startsAt <= .latest else {
                throw .invalid("startsAt")
            }
        }
    }
}

/// A requested change of the details; nil fields stay unchanged.
package struct StageEdit: Equatable, Sendable {
    /// Cleared: the stream has no title.
    package var title = PatchedField<String>.keep
    /// A new time must be at most one minute in the past.
    package var startsAt = PatchedField<WallTime>.keep
    /// Within `StageDetails.joinAheadRange`.
    package var joinAheadSeconds: Int?
    /// Within `StageDetails.hostGraceRange`.
    package var hostGraceSeconds: Int?
    /// Takes effect once it is durable.
    package var programme: StageDetails.Programme?
    /// Within `StageDetails.maxSpeakersRange`.
    package var maxSpeakers: Int?
    /// Replaced as a whole; cleared: the default composition.
    package var composition = PatchedField<StageDetails.Composition>.keep
    /// Replaces when the programme is recorded.
    package var recording: StageDetails.Recording?
    /// Replaces who may make clips.
    package var clips: StageDetails.Clips?
    /// Replaces whether viewers may watch by HLS.
    package var hls: StageDetails.HLS?
    /// Within `StageDetails.dvrRange`.
    package var dvrSeconds: Int?
    /// Replaced as a whole; cleared: every viewer who is let in gets the programme.
    package var gate = PatchedField<StageDetails.Gate>.keep
    /// Replaces how far the audience takes part in data tracks.
    package var audienceData: StageDetails.AudienceData?
    /// Replaced as a whole.
    package var layers: [StageDetails.Layer]?

    package init() {}

    /// The details with this change; the caller validates them.
    func applied(to details: StageDetails) -> StageDetails {
        var details = details
        title.apply(to: &details.title)
        startsAt.apply(to: &details.startsAt)
        if let joinAheadSeconds { details.joinAheadSeconds = joinAheadSeconds }
        if let hostGraceSeconds { details.hostGraceSeconds = hostGraceSeconds }
        if let programme { details.programme = programme }
        if let maxSpeakers { details.maxSpeakers = maxSpeakers }
        composition.apply(to: &details.composition)
        if let recording { details.recording = recording }
        if let clips { details.clips = clips }
        if let hls { details.hls = hls }
        if let dvrSeconds { details.dvrSeconds = dvrSeconds }
        gate.apply(to: &details.gate)
        if let audienceData { details.audienceData = audienceData }
        if let layers { details.layers = layers }
        return details
    }
}
