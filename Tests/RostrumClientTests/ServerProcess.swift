import Foundation
import TestSupport

/// A server of its own for one test, on loopback and ports that the kernel chooses.
final class ServerProcess {
    let url: URL
    private let process = Process()

    struct Failure: Error {
        let output: String
    }

    /// - Parameter port: of HTTP; 0 lets the kernel choose.
    init(port: Int = 0) async throws {
        process.standardInput = FileHandle.nullDevice
        process.executableURL = URL(fileURLWithPath: BuiltProducts.path("rostrum"))
        process.arguments = [
            "serve", "--dev", "--http", "127.0.0.1:\(port)", "--udp", "127.0.0.1:0", "--workers", "1",
            "--transcoder", "off",
        ]
        let output = Pipe()
        process.standardOutput = output
        process.standardError = output
        try process.run()
        let identifier = process.processIdentifier
        let text = await withTaskCancellationHandler {
            await Self.beginning(of: output.fileHandleForReading)
        } onCancel: {
            // The test's time is over, and nothing was said.
            kill(identifier, SIGKILL)
        }
        guard let address = Self.address(in: text), let url = URL(string: "http://\(address)") else {
            process.terminate()
            throw Failure(output: text)
        }
        self.url = url
    }

    /// What it says until it says where it listens, or until it ends; what it says later is read, and forgotten.
    private static func beginning(of output: FileHandle) async -> String {
        await withCheckedContinuation { continuation in
            // Reading waits, which no task may.
            Thread.detachNewThread {
                var text = Data()
                var teller = Optional(continuation)
                while case let more = output.availableData, !more.isEmpty {
                    guard let waiting = teller else { continue }
                    text += more
                    let said = String(decoding: text, as: UTF8.self)
                    guard address(in: said) != nil else { continue }
                    waiting.resume(returning: said)
                    teller = nil
                }
                teller?.resume(returning: String(decoding: text, as: UTF8.self))
            }
        }
    }

    /// Where it listens, once it has said so in a whole line.
    private static func address(in text: String) -> Substring? {
        text.split(separator: "\n", omittingEmptySubsequences: false).dropLast().lazy.filter {
            $0.hasPrefix("ready http=") && $0.contains(" udp=")
        }
        .compactMap { $0.dropFirst("ready http=".count).split(separator: " ").first }.first
    }

    func stop() {
        process.terminate()
        process.waitUntilExit()
    }
}
