import Base
import Foundation
import HTTP
import Node
import Stage

/// A request's JSON object, with typed access to its members.
///
/// Accessors return nil for a missing member and for `null`, and throw a 422 that names a member of another type.
package struct JSONBody {
    /// The members that are not `null`.
    private let members: [String: JSON]
    /// Names of the members that are `null`, which in a merge patch means removal (RFC 7396 §1).
    private let cleared: Set<String>

    /// Parses a request's body.
    /// - Parameters:
    ///   - isOptional: whether a missing body counts as an empty object.
    ///   - check: checks the names of all members before any is read.
    /// - Throws: 415 for another content type, 400 for a body that is no JSON object, and what `check` throws.
    package init(
        _ request: HTTPRequest, isOptional: Bool = false,
        check: ([String: JSON]) throws(Problem) -> Void
    ) throws(Problem) {
        if request.body.isEmpty, isOptional {
            (members, cleared) = ([:], [])
            return
        }
        guard
            MediaType.isContent(of: request, MediaType.json)
                || MediaType.isContent(of: request, MediaType.mergePatch)
        else {
            throw Problem(415, nil, "The request's Content-Type must be \(MediaType.json).")
        }
        guard case .object(let members)? = JSON(parsing: request.body) else {
            throw Problem(400, nil, "The body must be a JSON object.")
        }
        try check(members)
        self.members = members.filter { $0.value != .null }
        cleared = Set(members.keys).subtracting(self.members.keys)
    }

    /// A nested object, for which `null` and a missing member are the same.
    private init(_ members: [String: JSON]) {
        self.members = members.filter { $0.value != .null }
        cleared = []
    }

    /// The 422 about a field, with its allowed values if they are known.
    static func invalid(_ name: String) -> Problem {
        StageRefusal.rejected(.invalid(name)).problem
    }

    /// A text.
    func string(_ name: String) throws(Problem) -> String? {
        switch members[name] {
        case nil: return nil
        case .string(let text): return text
        default: throw Self.invalid(name)
        }
    }

    /// A text in a merge patch: `null` clears it, a missing member keeps it.
    func clearableString(_ name: String) throws(Problem) -> PatchedField<String> {
        guard !cleared.contains(name) else { return .clear }
        return try string(name).map { .set($0) } ?? .keep
    }

    /// An identity.
    func participant(_ name: String) throws(Problem) -> ParticipantID? {
        guard let text = try string(name) else { return nil }
        guard let id = ParticipantID(text) else { throw Self.invalid(name) }
        return id
    }

    /// The identity in the member `participant`, which must be there.
    func requiredParticipant() throws(Problem) -> ParticipantID {
        guard let id = try participant("participant") else { throw Self.invalid("participant") }
        return id
    }

    /// A display name, without surrounding blanks; must not be blank.
    func personName(_ name: String) throws(Problem) -> String? {
        guard let text = try string(name)?.trimmed else { return nil }
        guard ParticipantID(text) != nil, !text.allSatisfy(\.isWhitespace) else { throw Self.invalid(name) }
        return text
    }

    /// A boolean; numbers and texts are not converted.
    func bool(_ name: String) throws(Problem) -> Bool? {
        switch members[name] {
        case nil: return nil
        case .bool(let value): return value
        default: throw Self.invalid(name)
        }
    }

    /// A whole number; `1.0` is one, `1.5` is not.
    func integer(_ name: String) throws(Problem) -> Int? {
        guard let value = members[name] else { return nil }
        guard case .number(let number) = value, let integer = Int(exactly: number) else {
            throw Self.invalid(name)
        }
        return integer
    }

    /// An array of texts.
    func strings(_ name: String) throws(Problem) -> [String]? {
        guard let value = members[name] else { return nil }
        guard case .array(let values) = value else { throw Self.invalid(name) }
        return try values.map { value throws(Problem) in
            guard case .string(let text) = value else { throw Self.invalid(name) }
            return text
        }
    }

    /// An array of whole numbers.
    func integers(_ name: String) throws(Problem) -> [Int]? {
        guard let value = members[name] else { return nil }
        guard case .array(let values) = value else { throw Self.invalid(name) }
        return try values.map { value throws(Problem) in
            guard case .number(let number) = value, let integer = Int(exactly: number) else {
                throw Self.invalid(name)
            }
            return integer
        }
    }

    /// An object whose members are whole numbers, with names of the client's choice.
    func counts(_ name: String) throws(Problem) -> [String: Int]? {
        guard let value = members[name] else { return nil }
        guard case .object(let values) = value else { throw Self.invalid(name) }
        var counts: [String: Int] = [:]
        for (key, value) in values {
            guard case .number(let number) = value, let count = Int(exactly: number) else {
                throw Self.invalid(name)
            }
            counts[key] = count
        }
        return counts
    }

    /// A value of any type.
    func any(_ name: String) -> JSON? { members[name] }

    /// A nested object.
    func object(_ name: String) throws(Problem) -> JSONBody? {
        guard let value = members[name] else { return nil }
        guard case .object(let fields) = value else { throw Self.invalid(name) }
        return JSONBody(fields)
    }

    /// An array of objects.
    func objects(_ name: String) throws(Problem) -> [JSONBody]? {
        guard let value = members[name] else { return nil }
        guard case .array(let values) = value else { throw Self.invalid(name) }
        return try values.map { value throws(Problem) in
            guard case .object(let fields) = value else { throw Self.invalid(name) }
            return JSONBody(fields)
        }
    }

    /// A text that is a raw value of an enumeration.
    private func value<Value: RawRepresentable>(_ name: String) throws(Problem) -> Value?
    where Value.RawValue == String {
        guard let text = try string(name) else { return nil }
        guard let value = Value(rawValue: text) else { throw Self.invalid(name) }
        return value
    }

    /// A merge patch of a stream's settings; ranges are checked by the stage.
    package func edit() throws(Problem) -> StageEdit {
        var edit = StageEdit()
        edit.title = try clearableString("title")
        if cleared.contains("startsAt") {
            edit.startsAt = .clear
        } else if let text = try string("startsAt") {
            guard let time = WallTime(text) else { throw Self.invalid("startsAt") }
            edit.startsAt = .set(time)
        }
        // These have no "none": `null` counts as missing and changes nothing.
        edit.joinAheadSeconds = try integer("joinAheadSeconds")
        edit.hostGraceSeconds = try integer("hostGraceSeconds")
        edit.maxSpeakers = try integer("maxSpeakers")
        edit.programme = try value("programme")
        edit.recording = try value("recording")
        edit.clips = try value("clips")
        edit.hls = try value("hls")
        edit.dvrSeconds = try integer("dvrSeconds")
        edit.audienceData = try value("audienceData")
        if cleared.contains("composition") {
            edit.composition = .clear
        } else if let composition = try object("composition") {
            edit.composition = .set(try composition.composition())
        }
        if cleared.contains("gate") {
            edit.gate = .clear
        } else if let gate = try object("gate") {
            edit.gate = .set(try gate.gate())
        }
        // An array replaces the whole list, as merge patches do (RFC 7396 §1).
        if let value = members["layers"] {
            guard case .array(let values) = value else { throw Self.invalid("layers") }
            edit.layers = try values.map { value throws(Problem) in
                guard case .string(let name) = value, let layer = StageDetails.Layer(rawValue: name) else {
                    throw Self.invalid("layers")
                }
                return layer
            }
        }
        return edit
    }

    /// A merge patch of a viewer's video preferences.
    package func deliveryPatch() throws(Problem) -> DeliveryPatch {
        do {
            // `null` is part of the patch, so it is merged in again.
            return try DeliveryPatch(members.merging(cleared.map { ($0, .null) }) { known, _ in known })
        } catch {
            throw Self.invalid(error.member)
        }
    }

    /// A merge patch of a stream's placement in lists.
    package func placementEdit() throws(Problem) -> StagePlacement.Edit {
        var edit = StagePlacement.Edit()
        if cleared.contains("pinned") {
            edit.pinned = .clear
        } else if let place = try integer("pinned") {
            edit.pinned = .set(place)
        }
        edit.boost = try integer("boost")
        return edit
    }

    /// A gate; errors name the member `gate` as a whole, whose description lists its parts.
    private func gate() throws(Problem) -> StageDetails.Gate {
        do throws(Problem) {
            guard let tier = try string("tier") else { throw Self.invalid("gate") }
            return StageDetails.Gate(
                tier: tier, freeSeconds: try integer("freeSeconds") ?? 0, unlock: try string("unlock"))
        } catch {
            throw Self.invalid("gate")
        }
    }

    /// The look of a composed programme; missing members have their defaults.
    private func composition() throws(Problem) -> StageDetails.Composition {
        var composition = StageDetails.Composition()
        do throws(Problem) {
            composition.width = try integer("width") ?? composition.width
            composition.height = try integer("height") ?? composition.height
            composition.framesPerSecond = try integer("fps") ?? composition.framesPerSecond
            composition.bitrate = try integer("bitrate") ?? composition.bitrate
            composition.layout = try value("layout") ?? composition.layout
            if let text = try string("background") {
                guard let color = StageDetails.Composition.Color(text) else {
                    throw Self.invalid("composition")
                }
                composition.background = color
            }
        } catch {
            throw Self.invalid("composition")
        }
        return composition
    }
}
