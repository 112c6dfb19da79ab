import Foundation

/// Files in Tests/Fixtures, found beside the source of this one.
package enum Fixtures {
    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().appendingPathComponent("Fixtures")

    package static func bytes(_ path: String) throws -> [UInt8] {
        try Array(Data(contentsOf: root.appendingPathComponent(path)))
    }

    package static func text(_ path: String) throws -> String {
        String(decoding: try bytes(path), as: UTF8.self)
    }

    /// Names of the files in a folder, in order.
    package static func names(in folder: String) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: root.appendingPathComponent(folder).path).sorted()
    }

    /// Names of the offers in Offers/, without `.sdp`, in order.
    package static let offerNames: [String] = {
        let folder = root.appendingPathComponent("Offers").path
        let files = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        return files.filter { $0.hasSuffix(".sdp") }.map { String($0.dropLast(4)) }.sorted()
    }()
}
