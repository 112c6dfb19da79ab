import Base
import Crypto
import Foundation
import HTTP

/// The web client: a few files, held in memory.
package struct WebPages: Sendable {
    /// The program was built or installed without its files.
    package struct Failure: Error, CustomStringConvertible {
        /// In words for an operator.
        package let description: String
    }

    private struct File: Sendable {
        let bytes: [UInt8]
        let type: String
        let tag: EntityTag
    }

    /// By path within the web client's folder.
    private let files: [String: File]
    let openAPI: HTTPResponse
    /// What is said on sockets and control channels.
    let asyncAPI: HTTPResponse
    /// By `openAPI`.
    let requestMembers: RequestMembers

    /// In bytes, for one file.
    private static let maximumSize = 4 * 1024 * 1024

    /// Reads the files that were built with this program.
    package static func load() throws(Failure) -> WebPages {
        // Not Bundle.module: it ends the process when the folder is not there.
        let folder = Bundle.main.bundleURL.appendingPathComponent("rostrum_Gateway.resources")
        return try WebPages(readingFrom: folder)
    }

    init(readingFrom folder: URL) throws(Failure) {
        let web = folder.appendingPathComponent("Web")
        let missing = Failure(
            description:
                "the web client is missing: \(folder.path) must lie beside the program; copy it there")
        guard let names = FileManager.default.enumerator(atPath: web.path)?.allObjects as? [String],
            names.contains("index.html")
        else { throw missing }
        var files: [String: File] = [:]
        for name in names {
            guard let type = Self.contentType(name),
                let data = try? Data(contentsOf: web.appendingPathComponent(name)),
                data.count <= Self.maximumSize
            else { continue }
            let bytes = [UInt8](data)
            files[name] = File(bytes: bytes, type: type, tag: Self.tag(bytes))
        }
        self.files = files
        guard let document = try? Data(contentsOf: folder.appendingPathComponent("openapi.json")),
            let messages = try? Data(contentsOf: folder.appendingPathComponent("asyncapi.json")),
            let described = try? JSONDecoder().decode(JSON.self, from: document)
        else { throw missing }
        requestMembers = RequestMembers(described)
        openAPI = HTTPResponse(
            status: 200, headers: ["Content-Type": MediaType.json], body: [UInt8](document))
        asyncAPI = HTTPResponse(
            status: 200, headers: ["Content-Type": MediaType.json], body: [UInt8](messages))
    }

    /// A page by its file's name.
    func page(_ name: String, for request: HTTPRequest) -> HTTPResponse {
        guard let file = files[name] else {
            return Problem(404, nil, "This page is not part of this build.").response
        }
        return respond(with: file, to: request)
    }

    /// Only files that were read at the start can be had, whatever the path says.
    ///
    /// Pages of other origins may have them too. What modules under `v1/` export stays as long as `/v1` does; what
    /// stands elsewhere is our own pages' business.
    func asset(_ path: String, for request: HTTPRequest) throws(Problem) -> HTTPResponse {
        let name = path.hasPrefix("v1/") ? path.dropFirst(3) : path[...]
        guard let file = files["assets/" + String(name)] else {
            throw Problem(404, nil, "There is no such file.")
        }
        var response = respond(with: file, to: request)
        response.headers.set("Access-Control-Allow-Origin", "*")
        response.headers.set("Cross-Origin-Resource-Policy", "cross-origin")
        return response
    }

    /// For people who lost their way; programs get a problem.
    func nothing(_ problem: Problem) -> HTTPResponse {
        let text = """
            <!doctype html>
            <html lang="en">
            <head>
              <meta charset="utf-8">
              <meta name="viewport" content="width=device-width, initial-scale=1">
              <title>Nothing here</title>
              <link rel="icon" href="/assets/icon.svg" type="image/svg+xml">
              <link rel="stylesheet" href="/assets/style.css">
            </head>
            <body>
              <main>
                <h1>Nothing here</h1>
                <p>There is no page at this address; perhaps it is misspelt.</p>
                <p><a href="/">See who is live</a></p>
              </main>
            </body>
            </html>

            """
        return HTTPResponse(
            status: problem.status,
            headers: [
                "Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-store",
                "Content-Security-Policy": Self.policy, "X-Content-Type-Options": "nosniff",
                "Referrer-Policy": "no-referrer", "Vary": "Accept",
            ], body: Array(text.utf8))
    }

    private func respond(with file: File, to request: HTTPRequest) -> HTTPResponse {
        let headers: HTTPHeaders = [
            // Kept, but asked about each time: names do not change with their contents.
            "Cache-Control": "no-cache",
            "Content-Security-Policy": Self.policy,
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
            "Cross-Origin-Opener-Policy": "same-origin",
            "Permissions-Policy": "camera=(self), microphone=(self), display-capture=(self)",
        ]
        return HTTPResponse(
            to: request, tag: file.tag, headers: headers, type: file.type, body: file.bytes)
    }

    /// Scripts, styles and connections of our own origin, and nothing else.
    private static let policy =
        "default-src 'none'; script-src 'self'; worker-src 'self'; style-src 'self'; img-src 'self' https: data: blob:; "
        + "media-src 'self' blob:; font-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none'; "
        + "form-action 'none'; frame-ancestors 'none'"

    private static func tag(_ bytes: [UInt8]) -> EntityTag {
        // No secret: the code serves as a digest.
        EntityTag(value: Base64URL.encode(HMAC.sha256(key: [0].span, bytes.span).prefix(12)))
    }

    private static func contentType(_ name: String) -> String? {
        switch name.split(separator: ".").last {
        case "html": "text/html; charset=utf-8"
        case "js", "mjs": "text/javascript; charset=utf-8"
        case "css": "text/css; charset=utf-8"
        case "svg": "image/svg+xml"
        case "png": "image/png"
        case "jpg": "image/jpeg"
        case "webp": "image/webp"
        case "ico": "image/x-icon"
        case "json": "application/json"
        case "webmanifest": "application/manifest+json"
        case "woff2": "font/woff2"
        case "mp3": "audio/mpeg"
        // Declarations of types, and examples in the guide: to be read, not run.
        case "txt", "ts", "py", "go", "php", "java": "text/plain; charset=utf-8"
        default: nil
        }
    }
}
