import Base
import Dispatch
import Foundation
import Testing

@testable import Gateway

@Suite(.timeLimit(.minutes(1))) struct TLSTests {
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

    @Test func `serves what it serves in the clear, and no HTTP 2`() async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("tls-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: folder) }
        let files = try await Self.makeFiles(in: folder)
        try await withServer {
            $0.tls = files
        } _: { server in
            let output = try await Self.run(
                [
                    "openssl", "s_client", "-connect", server.address.description, "-CAfile",
                    files.certificate,
                    "-verify_return_error", "-verify_hostname", "localhost", "-alpn", "h2,http/1.1",
                    "-ign_eof",
                ],
                input: "POST /secret HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello")
            #expect(output.contains("ALPN protocol: http/1.1"))
            #expect(output.contains("HTTP/1.1 200 OK"))
            #expect(output.contains("POST\n/secret\n\nhello"))
        }
    }

    @Test func `survives those who do not speak it`() async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("tls-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: folder) }
        let files = try await Self.makeFiles(in: folder)
        try await withServer {
            $0.tls = files
        } _: { server in
            for _ in 0..<20 {
                let client = try RawClient(server.address)
                try await client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
                _ = try? await client.receiveToEnd()
            }
            let output = try await Self.run(
                ["openssl", "s_client", "-connect", server.address.description, "-quiet"],
                input: "GET /alive HTTP/1.1\r\nHost: localhost\r\n\r\n")
            #expect(output.contains("GET\n/alive\n"))
        }
    }

    @Test(arguments: [
        "/a%00b", "/%00a", "/a?b=%00", "/%zz", "/a%2", "/a?b=%zz",
    ])
    func `tells what is wrong with an address, however it is written`(_ target: String) async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("tls-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: folder) }
        let files = try await Self.makeFiles(in: folder)
        try await withServer {
            $0.tls = files
        } _: { server in
            let output = try await Self.run(
                ["openssl", "s_client", "-connect", server.address.description, "-quiet"],
                input: "GET \(target) HTTP/1.1\r\nHost: localhost\r\n\r\n")
            #expect(output.hasPrefix("HTTP/1.1 400 "), "\(target) \(output)")
            #expect(output.ranges(of: "HTTP/1.").count == 1, "\(target) \(output)")
            #expect(!output.contains("<"), "\(target) \(output)")
        }
    }
}
