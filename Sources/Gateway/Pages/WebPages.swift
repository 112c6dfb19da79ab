import Base
import Foundation
import HTTP
import Node

/// The web client's files and the API documents, read at the start and held in memory.
package struct WebPages: Sendable {
    /// The program was built or installed without its resources.
    package struct Failure: Error, CustomStringConvertible {
        /// For operators, with the path that is missing.
        package let description: String
    }

    /// Files by path within the web client's folder.
    private let files: [String: WebFile]
    /// Folder under `/assets/` from which pages load files: `build-` and a digest of all files.
    ///
    /// The name changes with any file, so browsers may keep everything in it without asking again.
    private let assetsOfThisBuild: String
    /// The OpenAPI document of all routes.
    let openAPI: WebFile
    /// The AsyncAPI document of messages on sockets and control channels.
    let asyncAPI: WebFile
    /// The members of request bodies, according to `openAPI`.
    let requestMembers: RequestMembers

    /// Limit of one file, in bytes; larger ones are skipped.
    private static let maximumSize = 4 * 1024 * 1024

    /// Reads the resources that were built with this program.
    /// - Throws: if they are missing; the server does not start without its pages.
    package static func load() throws(Failure) -> WebPages {
        // Not `Bundle.module`, which terminates the process if the folder is missing.
        let folder = Bundle.main.bundleURL.appendingPathComponent("rostrum_Gateway.resources")
        return try WebPages(readingFrom: folder)
    }

    /// - Parameter folder: contains `Web`, `openapi.json` and `asyncapi.json`.
    init(readingFrom folder: URL) throws(Failure) {
        let web = folder.appendingPathComponent("Web")
        let missing = Failure(
            description:
                "the web client is missing: \(folder.path) must lie beside the program; copy it there")
        guard let names = FileManager.default.enumerator(atPath: web.path)?.allObjects as? [String],
            names.contains("index.html")
        else { throw missing }
        var contents: [String: [UInt8]] = [:]
        for name in names where Self.contentType(name) != nil {
            guard let data = try? Data(contentsOf: web.appendingPathComponent(name)),
                data.count <= Self.maximumSize
            else { continue }
            contents[name] = [UInt8](data)
        }
        let folderOfAssets = Self.prefix + Self.digest(contents)
        assetsOfThisBuild = folderOfAssets
        files = Dictionary(
            uniqueKeysWithValues: contents.compactMap { name, bytes in
                guard let type = Self.contentType(name) else { return nil }
                let isPage = name.hasSuffix(".html")
                return (
                    name, WebFile(isPage ? Self.page(bytes, loadingFrom: folderOfAssets) : bytes, type: type)
                )
            })
        guard let document = try? Data(contentsOf: folder.appendingPathComponent("openapi.json")),
            let messages = try? Data(contentsOf: folder.appendingPathComponent("asyncapi.json")),
            let described = JSON(parsing: [UInt8](document))
        else { throw missing }
        requestMembers = RequestMembers(described)
        openAPI = WebFile([UInt8](document), type: MediaType.json)
        asyncAPI = WebFile([UInt8](messages), type: MediaType.json)
    }

    /// Prefix of the folder name of a build's assets.
    private static let prefix = "build-"

    /// A digest of all names and contents, in a fixed order.
    private static func digest(_ contents: [String: [UInt8]]) -> String {
        var all: [UInt8] = []
        for (name, bytes) in contents.sorted(by: { $0.key < $1.key }) {
            all += name.utf8
            all += WebFile.digest(bytes).utf8
        }
        return WebFile.digest(all)
    }

    /// A page with the addresses of its files changed to this build's folder.
    ///
    /// Files under `v1/` keep their address, because pages of other origins use it and the guide shows it.
    private static func page(_ bytes: [UInt8], loadingFrom folder: String) -> [UInt8] {
        let text = String(decoding: bytes, as: UTF8.self)
            .replacing("=\"/assets/", with: "=\"/assets/\(folder)/")
            .replacing("=\"/assets/\(folder)/v1/", with: "=\"/assets/v1/")
        return Array(text.utf8)
    }

    /// An API document, which caches must revalidate.
    func document(_ file: WebFile, for request: HTTPRequest) -> HTTPResponse {
        file.response(to: request, headers: ["Cache-Control": "no-cache"])
    }

    /// A page by its file name.
    func page(_ name: String, for request: HTTPRequest) -> HTTPResponse {
        guard let file = files[name] else {
            return Problem(404, nil, "This page isn't part of this build.").response
        }
        return file.response(to: request, headers: Self.headers)
    }

    /// A file that pages load; only files read at the start are served, whatever the path contains.
    ///
    /// Pages of other origins may load them too. Exports of modules under `v1/` remain stable as long as `/v1`
    /// exists; other files may change with any build. A page of an earlier build gets the present files.
    func asset(_ path: String, for request: HTTPRequest) throws(Problem) -> HTTPResponse {
        let first = path.prefix { $0 != "/" }
        let isVersioned = first == "v1" || first.hasPrefix(Self.prefix)
        let name = isVersioned ? path.dropFirst(first.count + 1) : path[...]
        guard let file = files["assets/" + String(name)] else {
            throw Problem(404, nil, "This file doesn't exist.")
        }
        var headers = Self.headers
        // A year (RFC 9111 §5.2.2.1, RFC 8246), as a different file would have a different address. Only for this
        // build's folder: under an earlier build's address the content differs from what caches expect.
        if first == assetsOfThisBuild { headers.set("Cache-Control", "public, max-age=31536000, immutable") }
        headers.set("Access-Control-Allow-Origin", "*")
        headers.set("Cross-Origin-Resource-Policy", "cross-origin")
        return file.response(to: request, headers: headers)
    }

    /// A 404 page for people; programs get the problem document.
    func nothing(_ problem: Problem) -> HTTPResponse {
        let text = """
            <!doctype html>
            <html lang="en">
            <head>
              <meta charset="utf-8">
              <meta name="viewport" content="width=device-width, initial-scale=1">
              <title>Nothing here</title>
              <link rel="icon" href="/assets/\(assetsOfThisBuild)/icon.svg" type="image/svg+xml">
              <link rel="stylesheet" href="/assets/\(assetsOfThisBuild)/style.css">
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

    /// Header fields of all pages and files.
    private static let headers: HTTPHeaders = [
        // Stored but revalidated each time, because these addresses do not change with the content (RFC 9111
        // §5.2.2.4).
        "Cache-Control": "no-cache",
        "Content-Security-Policy": policy,
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Permissions-Policy": "camera=(self), microphone=(self), display-capture=(self)",
    ]

    /// The content security policy: scripts, styles and connections of this origin only, and no inline code.
    ///
    /// Pictures may come from any HTTPS address, because hosts choose them for cards and gifts.
    /// - Source: W3C Content Security Policy Level 3.
    private static let policy =
        "default-src 'none'; script-src 'self'; worker-src 'self'; style-src 'self'; img-src 'self' https: data: blob:; "
        + "media-src 'self' blob:; font-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none'; "
        + "form-action 'none'; frame-ancestors 'none'"

    /// The media type by a name's extension; nil for files that are not served.
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
        case "txt", "ts", "py", "go", "php", "java", "swift": "text/plain; charset=utf-8"
        default: nil
        }
    }
}
