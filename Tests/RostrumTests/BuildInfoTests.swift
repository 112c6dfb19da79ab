import Foundation
import Gateway
import Testing

@testable import rostrum

@Suite struct `What a build says of itself` {
    /// A directory with a program that was built, and the commit told at the times given, in seconds.
    private func commit(_ text: String, built: TimeInterval, told: TimeInterval) throws -> String? {
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        let program = directory.appendingPathComponent("rostrum").path
        for (path, text, time) in [(program, "", built), (program + ".commit", text, told)] {
            try Data(text.utf8).write(to: URL(fileURLWithPath: path))
            try FileManager.default.setAttributes(
                [.modificationDate: Date(timeIntervalSince1970: time)], ofItemAtPath: path)
        }
        return BuildInfo.commit(beside: program)
    }

    @Test func `is the commit that was told after the program was built`() throws {
        #expect(try commit("0123456789ab-dirty\n", built: 1_000, told: 1_000) == "0123456789ab-dirty")
        #expect(try commit("0123456789ab\n", built: 1_000, told: 2_000) == "0123456789ab")
    }

    @Test func `is not that of an earlier build`() throws {
        #expect(try commit("0123456789ab\n", built: 1_001, told: 1_000) == nil)
        #expect(BuildInfo.commit(beside: "/nonexistent/rostrum") == nil)
    }

    @Test(arguments: ["", "\n", "two words", "quo\"ted", String(repeating: "a", count: 101)])
    func `is nothing that could not be a commit`(_ text: String) throws {
        #expect(try commit(text, built: 1, told: 2) == nil)
    }

    @Test func `names version and commit in a metric`() {
        let text = [BuildInfo.metric].text
        #expect(text.contains("rostrum_build_info{version=\"\(Rostrum.version)\",commit=\""))
    }
}
