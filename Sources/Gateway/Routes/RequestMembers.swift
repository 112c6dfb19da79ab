import Base
import HTTP

/// Which members the JSON body of each request may have: those that `openapi.json` describes, so that a misspelt one is
/// told and not passed over.
struct RequestMembers: Sendable {
    private indirect enum Shape: Sendable {
        /// Names that the client makes up, and whatever is no object.
        case free
        case object([String: Shape])
        case list(Shape)
    }

    /// By `operationId`.
    private let shapes: [String: Shape]

    /// Of what references lead to; deeper objects are free.
    private static let depth = 8

    /// - Parameter document: an OpenAPI document.
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

    private static func shape(of schema: JSON, in document: JSON, depth: Int) -> Shape {
        guard depth > 0 else { return .free }
        if case .string(let reference)? = schema["$ref"] {
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

    /// Whether it knows what may stand in the body of a request.
    func describes(_ operation: String) -> Bool { shapes[operation] != nil }

    /// - Throws: what is wrong with the first member that nobody knows, in alphabetical order.
    func check(_ members: [String: JSON], of operation: String) throws(Problem) {
        guard let shape = shapes[operation] else { return }
        try Self.check(.object(members), shape, path: "")
    }

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

    private static func unknown(_ name: String, at path: String, among known: [String]) -> Problem {
        let name = String(name.prefix(64))
        let nearest = NearestName.of(name, among: known)
        let question = nearest.map { " Did you mean \($0)?" } ?? ""
        let allowed = known.isEmpty ? "none is." : known.joined(separator: ", ") + "."
        var problem = Problem(
            400, "unknown-member",
            "The body's member \(path)\(name) is not known here.\(question) Allowed: \(allowed)")
        problem.members = [
            "member": .string(path + name), "nearest": .text(nearest),
            "allowed": .array(known.map { .string($0) }),
        ]
        return problem
    }
}
