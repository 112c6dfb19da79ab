import Foundation
import TestSupport

/// A server of its own for one test, on loopback and ports that the kernel chooses.
final class ServerProcess {
    let url: URL
    private let process: Process
    /// A file, because nobody reads what it says after its first lines.
    private let log: URL

    struct Failure: Error {
        let output: String
    }

    /// - Parameter port: of HTTP; 0 lets the kernel choose.
    init(port: Int = 0) async throws {
        log = FileManager.default.temporaryDirectory.appending(path: "rostrum-client-\(UUID()).log")
        try Data().write(to: log)
        let output = try FileHandle(forWritingTo: log)
        process = Process()
        process.standardInput = FileHandle.nullDevice
        process.executableURL = URL(fileURLWithPath: BuiltProducts.path("rostrum"))
        process.arguments = [
            "serve", "--dev", "--http", "127.0.0.1:\(port)", "--udp", "127.0.0.1:0", "--workers", "1",
            "--transcoder", "off",
        ]
        process.standardOutput = output
        process.standardError = output
        try process.run()
        var text = ""
        while Self.address(in: text) == nil {
            guard process.isRunning else { throw Failure(output: text) }
            try await Task.sleep(for: .milliseconds(20))
            text = try String(contentsOf: log, encoding: .utf8)
        }
        guard let address = Self.address(in: text), let url = URL(string: "http://\(address)") else {
            throw Failure(output: text)
        }
        self.url = url
    }

    /// Where it listens, once it has said so.
    private static func address(in text: String) -> Substring? {
        text.split(separator: "\n").lazy.filter { $0.hasPrefix("ready http=") && $0.contains(" udp=") }
            .compactMap { $0.dropFirst("ready http=".count).split(separator: " ").first }.first
    }

    func stop() {
        process.terminate()
        process.waitUntilExit()
        try? FileManager.default.removeItem(at: log)
    }
}
