import Base
import Node
import Stage

/// Descriptions of the allowed values of fields, for error messages.
///
/// Limits are taken from the constants that the stage checks, so that message and check agree.
enum AllowedValues {
    /// Ends the sentence "FIELD must be …", by the field's name.
    static let byField: [String: String] = [
        "title": "1 to \(StageDetails.titleLength) printable characters, or null",
        "startsAt": "a future time with its time zone, such as 2030-01-01T20:00:00Z, or null",
        "joinAheadSeconds": range(StageDetails.joinAheadRange),
        "hostGraceSeconds": range(StageDetails.hostGraceRange),
        "dvrSeconds": range(StageDetails.dvrRange),
        "maxSpeakers": range(StageDetails.maxSpeakersRange),
        "place": "a whole number from 1 to \(Stage.handLimit); give either place or held",
        "held": "true or false", "programme": choice(StageDetails.Programme.self),
        "recording": choice(StageDetails.Recording.self),
        "clips": choice(StageDetails.Clips.self),
        "hls": choice(StageDetails.HLS.self),
        "audienceData": choice(StageDetails.AudienceData.self),
        "layers": "a list of different \(choice(StageDetails.Layer.self))",
        "composition":
            "an object with width, height, fps, bitrate, layout (grid or spotlight) and background (#RRGGBB), "
            + "both sides even, or null",
        "gate":
            "an object with tier (1 to 32 of A-Z a-z 0-9 _ -), freeSeconds (\(range(StageDetails.Gate.freeRange))) "
            + "and unlock (an https address of up to \(StageDetails.Gate.addressLength) bytes), or null",
        "pinned": range(StagePlacement.pinnedRange) + ", or null", "boost": range(StagePlacement.boostRange),
        "id": "1 to 64 of A-Z a-z 0-9 _ -", "stream": "1 to 64 of A-Z a-z 0-9 _ -",
        "host": "1 to 128 printable characters", "hostName": "1 to 128 printable characters",
        "name": "1 to 128 printable characters, not only spaces",
        "participant": "an identity of 1 to 128 printable characters",
        "kind": choice(MediaKind.self),
        "audioMuted": "true or false; give audioMuted, videoMuted or paused", "videoMuted": "true or false",
        "paused": "true or false", "role": "speaker or viewer",
        "ttl": "a whole number of seconds from 1 to 2592000",
        "state": choice(StreamState.self), "limit": "a whole number from 1 to what the operation allows",
        "cursor": "the value of next from an earlier response", "ban": "true or false",
        "after": "a time with its time zone, such as 2030-01-01T20:00:00Z",
        "before": "a time with its time zone, such as 2030-01-01T20:00:00Z",
        "Idempotency-Key": "1 to 255 bytes",
    ]

    /// Describes a range of whole numbers.
    private static func range(_ range: ClosedRange<Int>) -> String {
        "a whole number from \(range.lowerBound) to \(range.upperBound)"
    }

    /// Lists the raw values of an enumeration.
    private static func choice<Choice: CaseIterable & RawRepresentable<String>>(_: Choice.Type) -> String {
        "one of " + Choice.allCases.map(\.rawValue).joined(separator: ", ")
    }
}
