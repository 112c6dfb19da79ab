import Base
import Forwarding
import Foundation

/// A change of what a viewer wants of the pictures: what is absent stays, and `null` leaves it to the server again.
/// - Source: RFC 7396 (JSON merge patch).
package struct DeliveryPatch: Equatable, Sendable {
    /// A member that means nothing.
    package struct Fault: Error, Equatable {
        /// Its name.
        package let member: String
    }

    /// The largest `maxHeight`, in pixels: what VP8 can tell.
    package static let greatestHeight = 16_383

    private var maximumHeight: Int??
    private var pin: DeliveryPreferences.Pin??
    private var isAudioOnly: Bool?

    /// - Parameter members: of a JSON object; what is not known is passed over.
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

    /// Limits the height and nothing else, whatever was pinned before; nil leaves it to the server again.
    init(maximumHeight: Int?) {
        self.maximumHeight = .some(maximumHeight)
        pin = .some(nil)
    }

    func applied(to old: DeliveryPreferences) -> DeliveryPreferences {
        DeliveryPreferences(
            maximumHeight: maximumHeight ?? old.maximumHeight, pin: pin ?? old.pin,
            isAudioOnly: isAudioOnly ?? old.isAudioOnly)
    }
}

extension DeliveryPreferences {
    var json: JSON {
        .object([
            "maxHeight": maximumHeight.map { .integer($0) } ?? .null, "pin": .text(pin?.rawValue),
            "audioOnly": .bool(isAudioOnly),
        ])
    }
}

extension DeliveryQuality {
    /// What a client is sent, as it stands on the control channel and in `GET …/quality`.
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
