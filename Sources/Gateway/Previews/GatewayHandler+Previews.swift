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
    /// as well, unless its bearer is banned. Nobody sees a backstage. Whoever does not show that the stream's gate is
    /// open to them gets a few pixels in place of its picture.
    func showPreview(_ call: Call, _ format: PreviewFormat) async throws -> HTTPResponse {
        let stream = try call.stream
        let isPublic = settings.viewers == .everyone
        var sender: Stage.Sender?
        if isPublic || !hasSignedAddress(call, of: stream) {
            sender = try call.access.requireViewer(of: stream)?.sender(in: stream)
            if let sender { try await requireAdmitted(sender, to: stream) }
        }
        guard let preview = await service.preview(of: stream) else {
            throw Problem(404, nil, "There is no picture of this stream.")
        }
        let isGated = try await service.gate(of: stream, before: nil) != nil
        let isBlurred = try await service.gate(of: stream, before: sender) != nil
        let taken = preview.about.capturedAt
        let form = (format == .webP ? "w" : "j") + (isBlurred ? "b" : "")
        let tag = EntityTag(value: "\(taken.milliseconds)\(form)")
        var headers: HTTPHeaders = [
            "Last-Modified": HTTPDate.text(Int(taken.milliseconds / 1_000)),
            "Cache-Control": "\(isPublic && !isGated ? "public" : "private"), max-age=5",
            "X-Content-Type-Options": "nosniff", "Cross-Origin-Resource-Policy": "cross-origin",
        ]
        if isGated { headers.add("Vary", "Authorization") }
        let (webP, jpeg) =
            isBlurred ? (preview.blurredWebP, preview.blurredJPEG) : (preview.webP, preview.jpeg)
        return HTTPResponse(
            to: call.request, tag: tag, changed: taken, headers: headers, type: format.contentType,
            body: format == .webP ? webP : jpeg)
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
