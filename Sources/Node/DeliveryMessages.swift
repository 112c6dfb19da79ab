import Base
import Forwarding
import Foundation

/// A change to a viewer's preferences for pictures.
///
/// An absent member leaves its preference as it is; `null` returns the choice to the server.
/// - Source: RFC 7396 (JSON merge patch).
package struct DeliveryPatch: Equatable, Sendable {
    /// A known member has an invalid value.
    package struct Fault: Error, Equatable {
        /// The member's name.
        package let member: String
    }

    /// The largest `maxHeight`, in pixels: the largest height that VP8 can express.
    package static let greatestHeight = 16_383

    /// For this and `pin`: nil if absent, `.some(nil)` if `null`.
    private var maximumHeight: Int??
    private var pin: DeliveryPreferences.Pin??
    /// Nil if absent; `null` counts as false.
    private var isAudioOnly: Bool?

    /// - Parameter members: of a JSON object; unknown members are ignored.
    package init(_ members: [String: JSON]) throws(Fault) {
        switch members["maxHeight"] {
        case nil: break
        case .null: maximumHeight = .some(nil)
        case .number(let number):
            guard let height = Int(exactly: number), (1...Self.greatestHeight).contains(height) else {
                throw Fault(member: "maxHeight")
            }
            maximumHeight = height
        default: throw Fault(member: "maxHeight")
        }
        switch members["pin"] {
        case nil: break
        case .null: pin = .some(nil)
        case .string(let name):
            guard let known = DeliveryPreferences.Pin(rawValue: name) else { throw Fault(member: "pin") }
            pin = known
        default: throw Fault(member: "pin")
        }
        switch members["audioOnly"] {
        case nil: break
        case .null: isAudioOnly = false
        case .bool(let value): isAudioOnly = value
        default: throw Fault(member: "audioOnly")
        }
    }

    /// Limits the height and removes an earlier pin; with nil the server chooses again.
    init(maximumHeight: Int?) {
        self.maximumHeight = .some(maximumHeight)
        pin = .some(nil)
    }

    /// The preferences after the change.
    package func applied(to old: DeliveryPreferences) -> DeliveryPreferences {
        DeliveryPreferences(
            maximumHeight: maximumHeight ?? old.maximumHeight, pin: pin ?? old.pin,
            isAudioOnly: isAudioOnly ?? old.isAudioOnly)
    }
}

extension DeliveryPreferences {
    /// As on the control channel and in HTTP answers; `null` where the server chooses.
    var json: JSON {
        .object([
            "maxHeight": maximumHeight.map { .integer($0) } ?? .null, "pin": .text(pin?.rawValue),
            "audioOnly": .bool(isAudioOnly),
        ])
    }
}

extension DeliveryQuality {
    /// What a client is sent, as on the control channel and in `GET …/quality`.
    ///
    /// The round trip is in seconds with microsecond precision, and `estimate` in bits per second.
    /// - Parameter quality: nil before the first measurement; the members are `null` then.
    static func json(_ quality: DeliveryQuality?, _ preferences: DeliveryPreferences) -> JSON {
        let roundTrip = quality?.roundTrip.map {
            JSON.number(Double($0.wholeNanoseconds / 1_000) / 1_000_000)
        }
        let members: [String: JSON] = [
            "estimate": quality?.estimate.map { .integer($0) } ?? .null,
            "roundTripSeconds": roundTrip ?? .null,
            "cause": .text(quality?.cause?.rawValue),
            "preferences": preferences.json,
            "pictures": .array((quality?.pictures ?? []).map(\.json)),
        ]
        return .object(members)
    }
}

extension DeliveryQuality.Picture {
    /// `wanted` is the best layer that the client may have and `served` the one that is sent; each is `null` if there
    /// is none.
    fileprivate var json: JSON {
        .object([
            "mid": .string(mid), "wanted": wanted?.json ?? .null, "served": served?.json ?? .null,
            "paused": .bool(isPaused), "preview": .bool(isPreview),
        ])
    }
}

extension DeliveryQuality.Layer {
    fileprivate var json: JSON {
        .object([
            "rid": .text(rid), "width": width.map { .integer($0) } ?? .null,
            "height": height.map { .integer($0) } ?? .null, "bitrate": .integer(bitrate),
        ])
    }
}
