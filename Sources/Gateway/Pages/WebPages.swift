import Base
import Foundation
import HTTP

/// The web client: a few files, held in memory.
package struct WebPages: Sendable {
    /// The program was built or installed without its files.
    package struct Failure: Error, CustomStringConvertible {
        /// In words for an operator.
        package let description: String
    }

    /// By path within the web client's folder.
    private let files: [String: WebFile]
    /// Where pages find what they load: its name changes with any file, so whoever has a file from there need not ask
    /// again.
    private let assetsOfThisBuild: String
    let openAPI: WebFile
    /// What is said on sockets and control channels.
    let asyncAPI: WebFile
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
            let described = try? JSONDecoder().decode(JSON.self, from: document)
        else { throw missing }
        requestMembers = RequestMembers(described)
        openAPI = WebFile([UInt8](document), type: MediaType.json)
        asyncAPI = WebFile([UInt8](messages), type: MediaType.json)
    }

    /// What begins the folder's name of a build's assets.
    private static let prefix = "build-"

    private static func digest(_ contents: [String: [UInt8]]) -> String {
        var all: [UInt8] = []
        for (name, bytes) in contents.sorted(by: { $0.key < $1.key }) {
            all += name.utf8
            all += WebFile.digest(bytes).utf8
        }
        return WebFile.digest(all)
    }

    /// A page whose own files lie in that folder.
    ///
    /// What is under `v1/` keeps its address: pages of others have it, too, and the guide shows it.
    private static func page(_ bytes: [UInt8], loadingFrom folder: String) -> [UInt8] {
        let text = String(decoding: bytes, as: UTF8.self)
            .replacing("=\"/assets/", with: "=\"/assets/\(folder)/")
            .replacing("=\"/assets/\(folder)/v1/", with: "=\"/assets/v1/")
        return Array(text.utf8)
    }

    /// A document that describes the API.
    func document(_ file: WebFile, for request: HTTPRequest) -> HTTPResponse {
        file.response(to: request, headers: ["Cache-Control": "no-cache"])
    }

    /// A page by its file's name.
    func page(_ name: String, for request: HTTPRequest) -> HTTPResponse {
        guard let file = files[name] else {
            return Problem(404, nil, "This page is not part of this build.").response
        }
        return file.response(to: request, headers: Self.headers)
    }

    /// Only files that were read at the start can be had, whatever the path says.
    ///
    /// Pages of other origins may have them too. What modules under `v1/` export stays as long as `/v1` does; what
    /// stands elsewhere is our own pages' business. A page that was loaded from another build gets what there is now.
    func asset(_ path: String, for request: HTTPRequest) throws(Problem) -> HTTPResponse {
        let first = path.prefix { $0 != "/" }
        let isVersioned = first == "v1" || first.hasPrefix(Self.prefix)
        let name = isVersioned ? path.dropFirst(first.count + 1) : path[...]
        guard let file = files["assets/" + String(name)] else {
            throw Problem(404, nil, "There is no such file.")
        }
        var headers = Self.headers
        // For a year (RFC 9111 §5.2.2.1, RFC 8246): another file would have another address.
        if first == assetsOfThisBuild { headers.set("Cache-Control", "public, max-age=31536000, immutable") }
        headers.set("Access-Control-Allow-Origin", "*")
        headers.set("Cross-Origin-Resource-Policy", "cross-origin")
        return file.response(to: request, headers: headers)
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

    /// Of everything that is the same for everybody.
    private static let headers: HTTPHeaders = [
        // Kept, but asked about each time: names do not change with their contents.
        "Cache-Control": "no-cache",
        "Content-Security-Policy": policy,
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Permissions-Policy": "camera=(self), microphone=(self), display-capture=(self)",
    ]

    /// Scripts, styles and connections of our own origin, and nothing else.
    private static let policy =
        "default-src 'none'; script-src 'self'; worker-src 'self'; style-src 'self'; img-src 'self' https: data: blob:; "
        + "media-src 'self' blob:; font-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none'; "
        + "form-action 'none'; frame-ancestors 'none'"

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
