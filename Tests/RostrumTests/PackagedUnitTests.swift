import Foundation
import Testing

/// What systemd is told in the Debian package.
@Suite struct `The packaged unit` {
    /// Its lines `name=value` without the comments.
    private func unit() throws -> [Substring] {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let file = root.appendingPathComponent("Tools/package.d/rostrum.service")
        return try String(contentsOf: file, encoding: .utf8).split(separator: "\n")
    }

    /// By default systemd gives up for good after five failures in ten seconds, which a restart each second reaches
    /// before an address or a disk is there.
    @Test func `gives no start up, unless the configuration makes no sense`() throws {
        let lines = try unit()
        #expect(lines.contains("Restart=on-failure"))
        #expect(lines.contains("StartLimitIntervalSec=0"))
        #expect(lines.contains("RestartPreventExitStatus=2"))
        // In the other section systemd would ignore it, with a warning that nobody reads.
        let section = try #require(lines.firstIndex(of: "[Service]"))
        let limit = try #require(lines.firstIndex(of: "StartLimitIntervalSec=0"))
        #expect(limit < section)
    }
}
