import Base
import HTTP

/// The members that each request's JSON body may have, taken from the OpenAPI document.
///
/// A misspelt member is refused rather than ignored, so that a client does not believe a setting took effect.
/// - Source: OpenAPI 3 (Request Body Object, Reference Object); JSON Schema (`properties`, `items`).
struct RequestMembers: Sendable {
    /// What a value may contain.
    private indirect enum Shape: Sendable {
        /// Anything: objects with names of the client's choice, and all other values.
        case free
        /// An object with these members only.
        case object([String: Shape])
        /// An array whose elements have this shape.
        case list(Shape)
    }

    /// Shapes of bodies by `operationId`.
    private let shapes: [String: Shape]

    /// Levels of nesting and references that are followed; deeper values are free, so a cycle of references ends.
    private static let depth = 8

    /// - Parameter document: an OpenAPI document; one without `paths` leaves all bodies free.
    init(_ document: JSON) {
        var shapes: [String: Shape] = [:]
        guard case .object(let paths)? = document["paths"] else {
            self.shapes = shapes
            return
        }
        for case .object(let operations) in paths.values {
            for operation in operations.values {
                guard case .string(let id)? = operation["operationId"],
                    case .object(let contents)? = operation["requestBody"]?["content"]
                else { continue }
                let schema = contents[MediaType.json] ?? contents[MediaType.mergePatch]
                guard let schema = schema?["schema"] else { continue }
                shapes[id] = Self.shape(of: schema, in: document, depth: Self.depth)
            }
        }
        self.shapes = shapes
    }

    /// The shape that a schema describes.
    private static func shape(of schema: JSON, in document: JSON, depth: Int) -> Shape {
        guard depth > 0 else { return .free }
        if case .string(let reference)? = schema["$ref"] {
            // Local references only: `#/components/schemas/Name`.
            let path = reference.split(separator: "/").dropFirst()
            let target = path.reduce(Optional(document)) { $0?[String($1)] }
            return target.map { shape(of: $0, in: document, depth: depth - 1) } ?? .free
        }
        if let items = schema["items"] { return .list(shape(of: items, in: document, depth: depth - 1)) }
        guard schema["additionalProperties"] == nil, case .object(let properties)? = schema["properties"]
        else {
            return .free
        }
        return .object(properties.mapValues { shape(of: $0, in: document, depth: depth - 1) })
    }

    /// Whether the document describes the body of an operation.
    func describes(_ operation: String) -> Bool { shapes[operation] != nil }

    /// Checks a body's members, nested ones included; types and values are not checked here.
    /// - Throws: a 400 about the first unknown member in alphabetical order.
    func check(_ members: [String: JSON], of operation: String) throws(Problem) {
        guard let shape = shapes[operation] else { return }
        try Self.check(.object(members), shape, path: "")
    }

    /// Checks a value; `path` is its position, for the error.
    private static func check(_ value: JSON, _ shape: Shape, path: String) throws(Problem) {
        switch (shape, value) {
        case (.object(let known), .object(let members)):
            for name in members.keys.sorted() {
                guard let inner = known[name] else {
                    throw unknown(name, at: path, among: known.keys.sorted())
                }
                guard let member = members[name] else { continue }
                try check(member, inner, path: path + name + ".")
            }
        case (.list(let inner), .array(let values)):
            for (index, value) in values.enumerated() { try check(value, inner, path: path + "\(index).") }
        default: return
        }
    }

    /// The error for an unknown member, with the most similar known name.
    private static func unknown(_ name: String, at path: String, among known: [String]) -> Problem {
        // The name comes from the client: the answer repeats only its beginning.
        let name = String(name.prefix(64))
        let nearest = NearestName.of(name, among: known)
        let question = nearest.map { " Did you mean \($0)?" } ?? ""
        let allowed =
            known.isEmpty ? "No members are allowed here." : "Allowed: \(known.joined(separator: ", "))."
        var problem = Problem(
            400, "unknown-member",
            "The body's member \(path)\(name) isn't known.\(question) \(allowed)")
        problem.members = [
            "member": .string(path + name), "nearest": .text(nearest),
            "allowed": .array(known.map { .string($0) }),
        ]
        return problem
    }
}
