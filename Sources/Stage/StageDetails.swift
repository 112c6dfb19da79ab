import Base

/// What a host decides about a stream, and may change.
package struct StageDetails: Equatable, Sendable, Codable {
    /// What viewers see and hear.
    package enum Programme: String, Sendable, Codable, CaseIterable {
        case host
        /// Whoever speaks.
        case activeSpeaker = "active-speaker"
        /// Everybody on stage in one picture.
        case composed
    }

    /// Parts of the web client's pages that can be switched off.
    package enum Layer: String, Sendable, Codable, CaseIterable {
        case background, player, movable, lite, float
    }

    /// How a composed programme looks.
    package struct Composition: Equatable, Sendable, Codable {
        /// How the places are shared out.
        package enum Layout: String, Sendable, Codable, CaseIterable {
            /// Everybody as large as everybody else.
            case grid
            /// Whoever spoke last large, the others small beside.
            case spotlight
        }

        /// What lies behind the pictures, as `#RRGGBB`.
        package struct Color: Equatable, Sendable, Codable {
            /// 0xRRGGBB.
            package let rgb: UInt32

            /// - Parameter rgb: its low 24 bits count.
            package init(rgb: UInt32) {
                self.rgb = rgb & 0xFF_FF_FF
            }

            /// - Returns: nil for what is none.
            package init?(_ text: String) {
                let digits = text.utf8.dropFirst()
                guard text.utf8.first == UInt8(ascii: "#"), digits.count == 6,
                    digits.allSatisfy({ Character(UnicodeScalar($0)).isHexDigit }),
                    let rgb = UInt32(text.dropFirst(), radix: 16)
                else { return nil }
                self.rgb = rgb
            }

            /// `#rrggbb`.
            package var text: String {
                let digits = String(rgb, radix: 16)
                return "#" + String(repeating: "0", count: 6 - digits.count) + digits
            }
        }

        /// Of the picture, in pixels; even.
        package var width = 1_280
        /// Of the picture, in pixels; even.
        package var height = 720
        /// Within `rateRange`.
        package var framesPerSecond = 30
        /// Of the video, in bits a second.
        package var bitrate = 2_000_000
        /// Where everybody is in the picture.
        package var layout = Layout.grid
        /// Behind and between the pictures.
        package var background = Color(rgb: 0x15_1A_22)

        package init() {}

        /// Of width and of height, in pixels.
        package static let sideRange = 320...1_920
        /// Of a picture: neither side may be as long as it can while the other is.
        package static let pixelLimit = 1_920 * 1_080
        /// In frames a second.
        package static let rateRange = 5...30
        /// In bits a second.
        package static let bitrateRange = 150_000...8_000_000

        var isValid: Bool {
            Self.sideRange.contains(width) && Self.sideRange.contains(height)
                && width.isMultiple(of: 2) && height.isMultiple(of: 2) && width * height <= Self.pixelLimit
                && Self.rateRange.contains(framesPerSecond) && Self.bitrateRange.contains(bitrate)
        }

        /// As the API shows it; it takes the same members.
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
        /// When the host says so.
        case manual
        /// From the beginning, until it ends or the host says so.
        case automatic
    }

    /// Who may make clips of the last minutes of the programme.
    package enum Clips: String, Sendable, Codable, CaseIterable {
        /// Nobody: nothing is kept for them.
        case off
        /// The host, and who moderates.
        case moderators
        /// Whoever takes part under a name.
        case everybody
    }

    /// Whether those whom WebRTC does not reach may watch by HLS, where the server makes it.
    package enum HLS: String, Sendable, Codable, CaseIterable {
        case on
        case off
    }

    /// What the audience has of data tracks.
    package enum AudienceData: String, Sendable, Codable, CaseIterable {
        case nothing = "none"
        /// It gets what the stage sends.
        case receive
        /// It may say something, too.
        case send
    }

    /// 1 to `titleLength` characters, none of them a control character.
    package var title: String?
    /// When viewers expect it to begin.
    package var startsAt: WallTime?
    /// So long before `startsAt` everybody may come in.
    package var joinAheadSeconds = 0
    /// How long a host may be away from a live stream.
    package var hostGraceSeconds = 30
    /// What viewers get while somebody is on stage.
    package var programme = Programme.host
    /// Nil for what is usual.
    package var composition: Composition?
    /// Nil, as for streams made before there was such a limit, for as many as there is room for.
    private var guestLimit: Int?
    /// On stage beside the host at once, within `maxSpeakersRange`; who is there already stays.
    package var maxSpeakers: Int {
        get { guestLimit ?? Self.maxSpeakersRange.upperBound }
        set { guestLimit = newValue }
    }
    /// Nil, as for streams made before there were recordings, for `manual`.
    package var recording: Recording?
    /// Nil, as for streams made before there were clips, for `moderators`.
    package var clips: Clips?
    /// Nil, as for streams made before there was a choice, for `on`.
    package var hls: HLS?
    /// Nil, as for streams made before viewers could go back, for none.
    private var window: Int?
    /// So far viewers by HLS can go back, within `dvrRange`, where the server keeps that.
    package var dvrSeconds: Int {
        get { window ?? 0 }
        set { window = newValue }
    }
    /// Nil where the programme is for everybody who is let in.
    package var gate: Gate?
    /// Nil, as for streams made before there was a choice, for `nothing`.
    package var audienceData: AudienceData?
    /// Those that are shown; the pages leave out what is missing.
    package var layers: [Layer] = Layer.allCases

    package init() {}

    /// In characters.
    package static let titleLength = 200
    /// In seconds: at most a day.
    package static let joinAheadRange = 0...86_400
    /// None for a host who stays alone, and all for whom a stage has room.
    package static let maxSpeakersRange = 0...Stage.stageLimit - 1
    /// In seconds: at most two hours.
    package static let dvrRange = 0...7_200
    /// In seconds: at most an hour.
    package static let hostGraceRange = 0...3_600

    /// From when on everybody may come in; nil if only going live opens the doors.
    package var admissionTime: WallTime? {
        startsAt?.advanced(bySeconds: -joinAheadSeconds)
    }

    /// Whether something may be called so.
    package static func isTitle(_ text: String) -> Bool {
        (1...titleLength).contains(text.count) && text.utf8.count <= 4 * titleLength
            && text.unicodeScalars.allSatisfy { $0.properties.generalCategory != .control }
            && !text.holdsFormatting
    }

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
            // A minute for slow forms and clocks that differ.
            guard startsAt.advanced(bySeconds: 60) >= now, startsAt <= .latest else {
                throw .invalid("startsAt")
            }
        }
    }
}

/// What somebody wants changed of the details; what is nil stays.
package struct StageEdit: Equatable, Sendable {
    /// Cleared, the stream has none.
    package var title = PatchedField<String>.keep
    /// A new one must not lie more than a minute in the past.
    package var startsAt = PatchedField<WallTime>.keep
    /// Within `StageDetails.joinAheadRange`.
    package var joinAheadSeconds: Int?
    /// Within `StageDetails.hostGraceRange`.
    package var hostGraceSeconds: Int?
    /// Holds from the moment at which it is durable.
    package var programme: StageDetails.Programme?
    /// Within `StageDetails.maxSpeakersRange`.
    package var maxSpeakers: Int?
    /// Replaced as a whole; cleared, the usual one.
    package var composition = PatchedField<StageDetails.Composition>.keep
    package var recording: StageDetails.Recording?
    package var clips: StageDetails.Clips?
    package var hls: StageDetails.HLS?
    /// Within `StageDetails.dvrRange`.
    package var dvrSeconds: Int?
    /// Replaced as a whole; cleared, everybody who is let in sees the programme.
    package var gate = PatchedField<StageDetails.Gate>.keep
    package var audienceData: StageDetails.AudienceData?
    /// Replaced as a whole.
    package var layers: [StageDetails.Layer]?

    package init() {}

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
