import Base
import Dispatch
import Foundation
import HTTPTestSupport
import Testing

@testable import HTTP

@Suite(.timeLimit(.minutes(10))) struct TLSTests {
    /// Runs a program and returns its output.
    private static func run(_ arguments: [String], input: String = "") async throws -> String {
        try await withCheckedThrowingContinuation { continuation in
            DispatchQueue(label: "program").async {
                continuation.resume(
                    with: Result {
                        let process = Process()
                        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
                        process.arguments = arguments
                        let (stdin, stdout) = (Pipe(), Pipe())
                        process.standardInput = stdin
                        process.standardOutput = stdout
                        process.standardError = FileHandle.nullDevice
                        try process.run()
                        try stdin.fileHandleForWriting.write(contentsOf: Data(input.utf8))
                        let output = stdout.fileHandleForReading.readDataToEndOfFile()
                        process.waitUntilExit()
                        return String(decoding: output, as: UTF8.self)
                    })
            }
        }
    }

    /// Makes a certificate for localhost that signs itself.
    private static func makeFiles(in folder: URL) async throws -> HTTPServerSettings.TLSFiles {
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let files = HTTPServerSettings.TLSFiles(
            certificate: folder.appendingPathComponent("tls.pem").path,
            key: folder.appendingPathComponent("tls.key").path)
        _ = try await run([
            "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
            "-days", "2",
            "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", files.key, "-out",
            files.certificate,
        ])
        return files
    }

    /// Lets a server speak TLS with a certificate that signs itself.
    private static func withTLSServer(
        _ body: (_ server: HTTPServer, _ files: HTTPServerSettings.TLSFiles) async throws -> Void
    ) async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("tls-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: folder) }
        let files = try await makeFiles(in: folder)
        try await withServer {
            $0.tls = files
        } _: { server in
            try await body(server, files)
        }
    }

    /// Sends a request by the program `openssl`, and returns what it prints.
    private static func say(
        _ request: String, to server: HTTPServer, _ options: [String] = ["-quiet"]
    ) async throws -> String {
        try await run(
            ["openssl", "s_client", "-connect", server.address.description] + options, input: request)
    }

    @Test func `serves what it serves in the clear, and no HTTP 2`() async throws {
        try await Self.withTLSServer { server, files in
            let output = try await Self.say(
                "POST /secret HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello", to: server,
                [
                    "-CAfile", files.certificate, "-verify_return_error", "-verify_hostname", "localhost",
                    "-alpn", "h2,http/1.1", "-ign_eof",
                ])
            #expect(output.contains("ALPN protocol: http/1.1"))
            #expect(output.contains("HTTP/1.1 200 OK"))
            #expect(output.contains("POST\n/secret\n\nhello"))
        }
    }

    @Test func `survives those who do not speak it`() async throws {
        try await Self.withTLSServer { server, _ in
            for _ in 0..<20 {
                let client = try RawClient(server.address)
                try await client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
                _ = try? await client.receiveToEnd()
            }
            let output = try await Self.say("GET /alive HTTP/1.1\r\nHost: localhost\r\n\r\n", to: server)
            #expect(output.contains("GET\n/alive\n"))
        }
    }

    @Test(arguments: [
        "/a%00b", "/%00a", "/a?b=%00", "/%zz", "/a%2", "/a?b=%zz",
    ])
    func `lets no malformed address through`(_ target: String) async throws {
        try await Self.withTLSServer { server, _ in
            let output = try await Self.say("GET \(target) HTTP/1.1\r\nHost: localhost\r\n\r\n", to: server)
            #expect(
                output.isEmpty || output.hasPrefix("HTTP/1.1 4") || output.hasPrefix("HTTP/1.0 4"),
                "\(output)")
            #expect(output.ranges(of: "HTTP/1.").count <= 1, "\(target) \(output)")
            let next = try await Self.say("GET /alive HTTP/1.1\r\nHost: localhost\r\n\r\n", to: server)
            #expect(next.contains("GET\n/alive\n"))
        }
    }
}
