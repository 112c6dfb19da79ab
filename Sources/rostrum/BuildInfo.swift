import Codecs
import Crypto
import Foundation
import Gateway
import Glibc
import HTTP
import Store
import Webhooks

/// Which version of the program runs.
enum BuildInfo {
    /// The commit it was built from, which `Tools/build` writes beside the program; `unknown` when something else built
    /// the program later.
    static let commit: String = {
        let program = Bundle.main.bundleURL.appendingPathComponent("rostrum").path
        return commit(beside: program) ?? "unknown"
    }()

    /// For `--version`: the program, and the libraries that it finds on this machine.
    static var text: String {
        let libraries =
            CodecLibraries.versions + CryptoLibraries.versions + HTTPLibraries.versions
            + StoreLibraries.versions
            + WebhookLibraries.versions
        let list = libraries.sorted { $0.name < $1.name }.map { "\($0.name) \($0.version)" }
        return "rostrum \(Rostrum.version) (\(commit))\nwith \(list.joined(separator: ", "))\n"
    }

    static var metric: Metric {
        Metric(
            "rostrum_build_info", .gauge, "Version and commit of the program; always 1.",
            [Metric.Sample(1, [Metric.Label("version", Rostrum.version), Metric.Label("commit", commit)])])
    }

    static func commit(beside program: String) -> String? {
        guard let built = age(program), let told = age(program + ".commit"), told >= built,
            let bytes = FileManager.default.contents(atPath: program + ".commit"),
            let text = String(data: bytes, encoding: .utf8)
        else { return nil }
        let commit = text.trimmingBlanks.prefix { $0 != "\n" }
        let isPlain = commit.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != 0x22 && $0 != 0x5C }
        return commit.isEmpty || commit.count > 100 || !isPlain ? nil : String(commit)
    }

    /// Nanoseconds since 1970.
    private static func age(_ path: String) -> Int? {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        return status.st_mtim.tv_sec * 1_000_000_000 + status.st_mtim.tv_nsec
    }
}
