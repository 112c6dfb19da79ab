import Foundation
import Testing

/// What other programs are told in the Debian package.
@Suite struct `The packaged configuration` {
    /// The lines of a file beside the package's script.
    private func lines(of name: String) throws -> [Substring] {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let file = root.appendingPathComponent("Tools/package.d").appendingPathComponent(name)
        return try String(contentsOf: file, encoding: .utf8).split(separator: "\n")
    }

    /// By default systemd gives up for good after five failures in ten seconds, which a restart each second reaches
    /// before an address or a disk is there.
    @Test func `has systemd give no start up, unless a setting makes no sense`() throws {
        let unit = try lines(of: "rostrum.service")
        #expect(unit.contains("Restart=on-failure"))
        #expect(unit.contains("StartLimitIntervalSec=0"))
        #expect(unit.contains("RestartPreventExitStatus=2"))
        // In the other section systemd would ignore it, with a warning that nobody reads.
        let section = try #require(unit.firstIndex(of: "[Service]"))
        let limit = try #require(unit.firstIndex(of: "StartLimitIntervalSec=0"))
        #expect(limit < section)
    }

    /// Without the scheme, links would lead to pages without a camera.
    ///
    /// A field that nginx does not set is passed on as the client wrote it, in the name of a trusted proxy.
    @Test(arguments: ["X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host"])
    func `has nginx say by itself what the server believes of a proxy`(_ field: String) throws {
        let proxy = try lines(of: "nginx.conf")
        #expect(proxy.contains { $0.hasPrefix("    proxy_set_header \(field) $") })
        // A location with a field of its own would inherit none of these.
        #expect(!proxy.contains { $0.hasPrefix("        proxy_set_header") })
    }
}
