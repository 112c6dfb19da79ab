import Foundation

/// Programs that were built beside the tests.
package enum BuiltProducts {
    package static func path(_ name: String) -> String {
        // The test bundle and the programs lie in one folder.
        let bundle = CommandLine.arguments.first { $0.hasSuffix(".xctest") }
        let anchor = bundle ?? Bundle.main.executablePath ?? ""
        return URL(fileURLWithPath: anchor).deletingLastPathComponent().appendingPathComponent(name).path
    }
}
