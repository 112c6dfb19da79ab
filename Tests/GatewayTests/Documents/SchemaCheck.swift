import Base

/// Checks values against the schemas of `openapi.json` and `asyncapi.json`.
///
/// Stricter than JSON Schema: a member that an object's schema does not name is a fault, because then nobody can read
/// of it. Of the keywords it knows those that the documents use for types, members, choices and least values.
struct SchemaCheck {
    /// By file name.
    let documents: [String: JSON]

    /// A schema, and where its references begin.
    private struct Place {
        let schema: JSON
        let document: String
    }

    /// Deeper values are faults: a schema may hold itself.
    private static let depth = 32

    /// - Returns: what is wrong, each with the path to it; empty for a value that fits.
    func faults(of value: JSON, as schema: JSON, in document: String) -> [String] {
        faults(value, Place(schema: schema, document: document), "$", Self.depth)
    }

    private func faults(_ value: JSON, _ place: Place, _ path: String, _ depth: Int) -> [String] {
        guard depth > 0 else { return ["\(path) is too deep"] }
        guard let parts = parts(of: place) else { return ["\(path) has a schema that is not there"] }
        var found: [String] = []
        for part in parts { found += own(value, part, path, depth) }
        switch value {
        case .object(let members): found += object(members, parts, path, depth)
        case .array(let values):
            for part in parts {
                guard let items = part.schema["items"] else { continue }
                for (index, value) in values.enumerated() {
                    let item = Place(schema: items, document: part.document)
                    found += faults(value, item, "\(path)[\(index)]", depth - 1)
                }
            }
        default: break
        }
        return found
    }

    /// All schemas that have to hold at once: what a reference leads to, and what stands in `allOf`.
    private func parts(of place: Place) -> [Place]? {
        if case .string(let reference)? = place.schema["$ref"] {
            let halves = reference.split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false)
            guard halves.count == 2 else { return nil }
            let name = halves[0].isEmpty ? place.document : String(halves[0])
            let target = halves[1].split(separator: "/").reduce(documents[name]) { $0?[String($1)] }
            return target.flatMap { parts(of: Place(schema: $0, document: name)) }
        }
        guard case .array(let all)? = place.schema["allOf"] else { return [place] }
        var result = [place]
        for schema in all {
            guard let parts = parts(of: Place(schema: schema, document: place.document)) else { return nil }
            result += parts
        }
        return result
    }

    /// What one schema says of a value itself.
    private func own(_ value: JSON, _ place: Place, _ path: String, _ depth: Int) -> [String] {
        let schema = place.schema
        var found: [String] = []
        if let constant = schema["const"], constant != value {
            found.append("\(path) is not \(constant.text)")
        }
        if case .array(let values)? = schema["enum"], !values.contains(value) {
            found.append("\(path) is \(value.text), which is none of \(JSON.array(values).text)")
        }
        if let type = schema["type"] {
            let names: [JSON] = if case .array(let names) = type { names } else { [type] }
            if !names.contains(where: { Self.isOfType(value, $0) }) {
                found.append("\(path) is \(value.text), no \(type.text)")
            }
        }
        if case .number(let least)? = schema["minimum"], case .number(let number) = value, number < least {
            found.append("\(path) is below \(least)")
        }
        if case .array(let choices)? = schema["anyOf"] ?? schema["oneOf"] {
            let answers = choices.map {
                faults(value, Place(schema: $0, document: place.document), path, depth - 1)
            }
            if !answers.contains(where: \.isEmpty) { found += answers.min { $0.count < $1.count } ?? [] }
        }
        return found
    }

    private func object(
        _ members: [String: JSON], _ parts: [Place], _ path: String, _ depth: Int
    ) -> [String] {
        var found: [String] = []
        for part in parts {
            guard case .array(let required)? = part.schema["required"] else { continue }
            for case .string(let name) in required where members[name] == nil {
                found.append("\(path).\(name) is missing")
            }
        }
        let isOpen =
            !parts.contains { $0.schema["properties"] != nil }
            && !parts.contains { $0.schema["additionalProperties"] != nil }
        for (name, value) in members where !isOpen {
            var isKnown = false
            for part in parts {
                guard let schema = part.schema["properties"]?[name] else { continue }
                isKnown = true
                let place = Place(schema: schema, document: part.document)
                found += faults(value, place, "\(path).\(name)", depth - 1)
            }
            guard !isKnown else { continue }
            guard let other = parts.first(where: { $0.schema["additionalProperties"] != nil }),
                let schema = other.schema["additionalProperties"]
            else {
                found.append("\(path).\(name) is not described")
                continue
            }
            guard case .object = schema else { continue }
            found += faults(
                value, Place(schema: schema, document: other.document), "\(path).\(name)", depth - 1)
        }
        return found
    }

    private static func isOfType(_ value: JSON, _ name: JSON) -> Bool {
        switch (name, value) {
        case (.string("null"), .null), (.string("boolean"), .bool), (.string("string"), .string),
            (.string("array"), .array), (.string("object"), .object), (.string("number"), .number):
            true
        case (.string("integer"), .number(let number)): number == number.rounded()
        default: false
        }
    }
}
