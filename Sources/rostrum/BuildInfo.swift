import Codecs
import Crypto
import Foundation
import Gateway
import Glibc
import HTTP
import Store
import Webhooks

/// Version and commit of the running program, and the versions of its libraries.
enum BuildInfo {
    /// The commit that the program was built from; `unknown` if it was not built by `Tools/build`.
    static let commit: String = {
        let program = Bundle.main.bundleURL.appendingPathComponent("rostrum").path
        return commit(beside: program) ?? "unknown"
    }()

    /// The text of `--version`: the program, and the libraries as they are installed on this machine.
    static var text: String {
        let libraries =
            CodecLibraries.versions + CryptoLibraries.versions + HTTPLibraries.versions
            + StoreLibraries.versions
            + WebhookLibraries.versions
        let list = libraries.sorted { $0.name < $1.name }.map { "\($0.name) \($0.version)" }
        return "rostrum \(Rostrum.version) (\(commit))\nwith \(list.joined(separator: ", "))\n"
    }

    /// The constant metric `rostrum_build_info`, whose labels carry version and commit.
    static var metric: Metric {
        Metric(
            "rostrum_build_info", .gauge, "Version and commit of the program; always 1.",
            [Metric.Sample(1, [Metric.Label("version", Rostrum.version), Metric.Label("commit", commit)])])
    }

    /// The content of the file `rostrum.commit` that `Tools/build` writes next to the program.
    ///
    /// A program that is newer than that file was built by something else, and its commit is unknown.
    /// - Returns: nil without a valid file.
    static func commit(beside program: String) -> String? {
        guard let built = age(program), let told = age(program + ".commit"), told >= built,
            let bytes = FileManager.default.contents(atPath: program + ".commit"),
            let text = String(data: bytes, encoding: .utf8)
        else { return nil }
        let commit = text.trimmingBlanks.prefix { $0 != "\n" }
        // The text becomes the value of a metric's label and a member of JSON: printable ASCII without quotation mark
        // and backslash needs no escape in either.
        let isPlain = commit.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != 0x22 && $0 != 0x5C }
        return commit.isEmpty || commit.count > 100 || !isPlain ? nil : String(commit)
    }

    /// Time of the last change, in nanoseconds since 1970; nil if there is no such file.
    private static func age(_ path: String) -> Int? {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        return status.st_mtim.tv_sec * 1_000_000_000 + status.st_mtim.tv_nsec
    }
}
