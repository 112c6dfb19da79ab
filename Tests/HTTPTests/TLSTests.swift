import Base
import Dispatch
import Foundation
import HTTPTestSupport
import Synchronization
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

    @Test func `serves what others have decrypted, for whom they say`() async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("tls-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: folder) }
        let files = try await Self.makeFiles(in: folder)
        let seen = Mutex<[HTTPRequest]>([])
        let handler = ClosureHandler(answer: { request in
            seen.withLock { $0.append(request) }
            return HTTPResponse(status: 204)
        })
        try await withServer(handler) {
            $0.tls = files
            $0.listens = false
            $0.maximumConnectionsPerAddress = 1
        } _: { server in
            let client = try #require(TransportAddress("203.0.113.9:50000"))
            let (one, first) = try RawClient.pair()
            server.adopt(first, from: client, isDecrypted: true)
            let (two, second) = try RawClient.pair()
            server.adopt(second, from: client, isDecrypted: true)
            // That is one too many of that address.
            #expect(try await two.receive().isEmpty)
            try await one.send("GET /a HTTP/1.1\r\nHost: h\r\n\r\n")
            #expect(try await one.response().status == 204)
            let requests = seen.withLock { $0 }
            #expect(requests.map(\.remoteAddress) == [client] && requests.allSatisfy(\.isSecure))
            // As all of a server with TLS it ends after one answer.
            #expect(try await one.receive().isEmpty)
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

    /// What the certificate says that a new connection is shown.
    private static func presented(by server: HTTPServer) async throws -> String {
        // After the answer the server closes the connection, which ends the program.
        let output = try await say(
            "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", to: server, ["-servername", "localhost", "-ign_eof"])
        return try await run(["openssl", "x509", "-noout", "-subject"], input: output)
    }

    /// Waits elsewhere, so that the server's tasks have a thread.
    private static func read(_ pipe: Pipe, until wanted: String) async throws {
        let file = pipe.fileHandleForReading
        let text = await withCheckedContinuation { continuation in
            DispatchQueue(label: "reader").async {
                var text = ""
                while !text.contains(wanted) {
                    let part = file.availableData
                    if part.isEmpty { break }
                    text += String(decoding: part, as: UTF8.self)
                }
                continuation.resume(returning: text)
            }
        }
        try #require(text.contains(wanted), "it ended with \(text)")
    }

    @Test(arguments: [["ec", "-pkeyopt", "ec_paramgen_curve:P-256"], ["rsa:2048"]])
    func `presents a certificate that came later, and drops nobody`(_ key: [String]) async throws {
        try await Self.withTLSServer { server, files in
            #expect(try await Self.presented(by: server).contains("CN = localhost"))
            // A connection of before, in the middle of a request.
            let (early, held) = (Pipe(), Pipe())
            let client = Process()
            client.executableURL = URL(fileURLWithPath: "/usr/bin/env")
            client.arguments = ["openssl", "s_client", "-ign_eof", "-connect", server.address.description]
            (client.standardInput, client.standardOutput) = (early, held)
            client.standardError = FileHandle.nullDevice
            try client.run()
            defer { client.terminate() }
            try await Self.read(held, until: "subject=CN = localhost")
            try early.fileHandleForWriting.write(
                contentsOf: Data(
                    "POST /early HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\nab".utf8))

            // What does not belong together changes nothing.
            _ = try await Self.run([
                "openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out",
                files.key,
            ])
            #expect(throws: HTTPServerError.self) { try server.renewCertificate(files) }
            #expect(try await Self.presented(by: server).contains("CN = localhost"))

            _ = try await Self.run(
                ["openssl", "req", "-x509", "-newkey"] + key + [
                    "-nodes", "-days", "2", "-subj", "/CN=renewed", "-addext",
                    "subjectAltName=DNS:renewed.example,IP:192.0.2.1", "-keyout", files.key, "-out",
                    files.certificate,
                ])
            try server.renewCertificate(files)
            await server.turn()
            #expect(try await Self.presented(by: server).contains("CN = renewed"))

            try early.fileHandleForWriting.write(contentsOf: Data("cd".utf8))
            try await Self.read(held, until: "POST\n/early\n\nabcd")
        }
    }

    @Test func `tells what a certificate says`() async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("tls-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: folder) }
        let files = try await Self.makeFiles(in: folder)
        let certificate = try ServerCertificate(files)
        #expect(certificate.names == ["localhost"] && certificate.isSelfIssued && !certificate.lacksChain)
        let validity = certificate.validity
        #expect(validity.until - validity.from == 2 * 86_400)
        let now = Int(Date().timeIntervalSince1970)
        #expect((validity.from...validity.from + 600).contains(now))
        try Data("no certificate".utf8).write(to: URL(fileURLWithPath: files.certificate))
        #expect(throws: HTTPServerError.self) { _ = try ServerCertificate(files).names }
    }
}
