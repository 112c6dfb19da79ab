import Foundation
import FuzzEntries
import TestSupport
import Testing

/// Everything that ever crashed a fuzz entry, and everything they begin with, once more.
@Suite struct FuzzReplay {
    private static let names = FuzzEntry.all.map(\.name)

    private func entry(_ name: String) throws -> FuzzEntry {
        try #require(FuzzEntry.all.first { $0.name == name })
    }

    /// Folder below Tests/Fixtures and suffix, out of the entry's line `// Seeds: FOLDER/*SUFFIX`.
    private func seedPattern(of name: String) throws -> (folder: String, suffix: String) {
        let source = try Fixtures.text("../Fuzz/\(name)Fuzz.swift")
        let line = try #require(source.split(separator: "\n").first { $0.hasPrefix("// Seeds: ") })
        let parts = line.dropFirst("// Seeds: ".count).split(separator: "*")
        try #require(parts.count == 2 && parts[0].hasSuffix("/"))
        return (String(parts[0].dropLast()), String(parts[1]))
    }

    private func seeds(of name: String) throws -> [[UInt8]] {
        let (folder, suffix) = try seedPattern(of: name)
        return try Fixtures.names(in: folder).filter { $0.hasSuffix(suffix) }.flatMap { file in
            suffix.hasSuffix(".hex")
                ? try PacketCapture("\(folder)/\(file)").packets : [try Fixtures.bytes("\(folder)/\(file)")]
        }
    }

    @Test func `knows every fuzz entry`() throws {
        let files = try Fixtures.names(in: "../Fuzz").filter { $0.hasSuffix("Fuzz.swift") }
        #expect(files.map { String($0.dropLast("Fuzz.swift".count)) } == Self.names)
    }

    private func crashers(of name: String) throws -> [[UInt8]] {
        let files = (try? Fixtures.names(in: "Crashers/\(name)")) ?? []
        return try files.map { try Fixtures.bytes("Crashers/\(name)/\($0)") }
    }

    private func replay(_ inputs: [[UInt8]], through name: String) throws {
        let entry = try entry(name)
        for input in inputs { entry.run(input.span) }
    }

    @Test(arguments: names) func `survives the seeds`(name: String) throws {
        let seeds = try seeds(of: name)
        #expect(!seeds.isEmpty)
        try replay(seeds, through: name)
    }

    @Test(arguments: names) func `survives what crashed once`(name: String) throws {
        try replay(try crashers(of: name), through: name)
    }

    /// A little of what libFuzzer does, where there is no time for more.
    @Test(arguments: names) func `survives seeds with errors`(name: String) throws {
        var random = SeededGenerator(seed: 9)
        for seed in try seeds(of: name) where !seed.isEmpty {
            try replay((0..<20).map { _ in garbled(seed, using: &random) }, through: name)
        }
    }

    /// Cut at some place, with up to four bytes changed.
    private func garbled(_ seed: [UInt8], using random: inout SeededGenerator) -> [UInt8] {
        var bytes = seed
        for _ in 0..<Int.random(in: 1...4, using: &random) {
            let index = Int.random(in: bytes.indices, using: &random)
            bytes[index] = .random(in: 0...255, using: &random)
        }
        return Array(bytes.prefix(Int.random(in: 1...(bytes.count * 2), using: &random)))
    }
}
