import Base
import HTTP
import Testing

@testable import Gateway

/// The examples of `openapi.json`, as far as that can be told without asking a server; `test_examples.py` asks one.
@Suite struct `Examples of the document of the API` {
    private let document: JSON
    private let check: SchemaCheck

    init() throws {
        document = try WebPages.load().openAPI.json(JSON.self)
        check = SchemaCheck(documents: ["openapi.json": document])
    }

    private func resolved(_ json: JSON?) -> JSON? {
        guard case .string(let reference)? = json?["$ref"] else { return json }
        return reference.split(separator: "/").dropFirst().reduce(document) { $0?[String($1)] ?? .null }
    }

    /// Each operation with its name, and the parameters of its path.
    private var operations: [(id: String, operation: JSON, shared: [JSON])] {
        guard case .object(let paths)? = document["paths"] else { return [] }
        var result: [(String, JSON, [JSON])] = []
        for path in paths.values {
            guard case .object(let members) = path else { continue }
            for operation in members.values {
                guard let id = operation["operationId"]?.string else { continue }
                result.append((id, operation, path["parameters"]?.array ?? []))
            }
        }
        return result
    }

    private func expect(_ content: JSON?, _ place: String) {
        guard case .object(let types)? = content else { return }
        for (type, media) in types {
            guard let example = media["example"] else { continue }
            let faults = check.faults(of: example, as: media["schema"] ?? .object([:]), in: "openapi.json")
            #expect(faults.isEmpty, "\(place) \(type): \(faults)")
        }
    }

    @Test func `fit their schemas`() {
        #expect(operations.count == Router.routes.count { !$0.isOfWebClient })
        for (id, operation, _) in operations {
            expect(operation["requestBody"]?["content"], "\(id), its request")
            guard case .object(let answers)? = operation["responses"] else { continue }
            for (status, answer) in answers { expect(resolved(answer)?["content"], "\(id), \(status)") }
        }
    }

    @Test func `are there for every request that takes a body or names something`() {
        for (id, operation, shared) in operations {
            let parameters = shared + (operation["parameters"]?.array ?? [])
            for parameter in parameters.compactMap({ resolved($0) })
            where parameter["in"]?.string == "path" || parameter["required"] == .bool(true) {
                #expect(parameter["example"] != nil, "\(id): \(parameter["name"]?.string ?? "")")
            }
            guard case .object(let types)? = operation["requestBody"]?["content"] else { continue }
            // Pictures are bytes.
            for (type, media) in types where !type.hasPrefix("image/") {
                #expect(media["example"] != nil, "\(id) \(type)")
            }
        }
    }

    @Test func `belong to a group that is described`() {
        let groups = Set((document["tags"]?.array ?? []).compactMap { $0["name"]?.string })
        #expect(!groups.isEmpty)
        for (id, operation, _) in operations {
            let own = operation["tags"]?.array ?? []
            #expect(own.count == 1 && groups.contains(own.first?.string ?? ""), "\(id)")
        }
    }

    @Test func `name the key by which each POST can be repeated`() {
        guard case .object(let paths)? = document["paths"] else { return }
        for (name, path) in paths {
            guard let operation = path["post"] else { continue }
            let references = (operation["parameters"]?.array ?? []).compactMap { $0["$ref"]?.string }
            #expect(references.contains("#/components/parameters/idempotencyKey"), "\(name)")
            for status in ["409", "422"] {
                #expect(operation["responses"]?[status] != nil, "\(name) \(status)")
            }
        }
    }
}
