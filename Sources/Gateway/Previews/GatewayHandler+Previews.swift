import Base
import HTTP
import Node
import Stage

/// Small pictures of streams.
extension GatewayHandler {
    enum PreviewFormat {
        case webP, jpeg

        var contentType: String { self == .webP ? "image/webp" : "image/jpeg" }
    }

    /// `GET /v1/streams/{stream}/preview.webp` and `.jpg`.
    ///
    /// Where streams are not public, the address that the stream's description names is signed; a viewer's token does
    /// as well, unless its bearer is banned. Nobody sees a backstage.
    func showPreview(_ call: Call, _ format: PreviewFormat) async throws -> HTTPResponse {
        let stream = try call.stream
        let isPublic = settings.viewers == .everyone
        if isPublic || !hasSignedAddress(call, of: stream) {
            let token = try call.access.requireViewer(of: stream)
            if let sender = token?.sender(in: stream) { try await requireAdmitted(sender, to: stream) }
        }
        guard let preview = await service.preview(of: stream) else {
            throw Problem(404, nil, "There is no picture of this stream.")
        }
        let taken = preview.about.capturedAt
        let tag = EntityTag(value: "\(taken.milliseconds)\(format == .webP ? "w" : "j")")
        let headers: HTTPHeaders = [
            "Last-Modified": HTTPDate.text(Int(taken.milliseconds / 1_000)),
            "Cache-Control": "\(isPublic ? "public" : "private"), max-age=5",
            "X-Content-Type-Options": "nosniff", "Cross-Origin-Resource-Policy": "cross-origin",
        ]
        return HTTPResponse(
            to: call.request, tag: tag, changed: taken, headers: headers, type: format.contentType,
            body: format == .webP ? preview.webP : preview.jpeg)
    }

    /// Refuses who is banned from a stream; one that nobody made has banned nobody.
    private func requireAdmitted(_ sender: Stage.Sender, to stream: StreamID) async throws {
        do throws(StageRefusal) {
            _ = try await service.look(at: stream, as: sender)
        } catch {
            guard error == .unknownStream else { throw error }
        }
    }

    private func hasSignedAddress(_ call: Call, of stream: StreamID) -> Bool {
        guard let time = call.request.query("ts"), let lifetime = call.request.query("ttl"),
            let signature = call.request.query("sig")
        else { return false }
        return settings.paths.previews.isGood(
            for: stream, time: time, lifetime: lifetime, signature: signature, now: call.access.now())
    }
}
