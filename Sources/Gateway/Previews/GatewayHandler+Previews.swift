import Base
import HTTP
import Node
import Stage

/// Previews: small still pictures of live streams.
extension GatewayHandler {
    /// The formats in which previews are kept.
    enum PreviewFormat {
        case webP, jpeg

        var contentType: String { self == .webP ? "image/webp" : "image/jpeg" }
    }

    /// `GET /v1/streams/{stream}/preview.webp` and `.jpg`.
    ///
    /// Where streams are not public, the stream's description contains a signed address of this picture; a viewer's
    /// token is accepted as well, unless its bearer is banned. There is no preview of a backstage. A client that does
    /// not prove that the stream's gate is open to it gets a heavily blurred picture.
    func showPreview(_ call: Call, _ format: PreviewFormat) async throws -> HTTPResponse {
        let stream = try call.stream
        let isPublic = settings.viewers == .everyone
        let isSigned = !isPublic && hasSignedAddress(call, of: stream)
        var sender: Stage.Sender?
        if !isSigned { sender = try await admittedSender(of: call, to: stream) }
        guard let preview = await service.preview(of: stream) else {
            throw Problem(404, nil, "There is no preview of this stream.")
        }
        // The address of an earlier picture may belong to someone who has been banned since.
        if isSigned, !isAddress(of: preview, call) {
            sender = try await admittedSender(of: call, to: stream)
        }
        let isGated = try await service.gate(of: stream, before: nil) != nil
        let isBlurred = try await service.gate(of: stream, before: sender) != nil
        let taken = preview.about.capturedAt
        // Each form has a tag of its own (RFC 9110 §8.8.3): a blurred picture must not pass for the clear one.
        let form = (format == .webP ? "w" : "j") + (isBlurred ? "b" : "")
        let tag = EntityTag(value: "\(taken.milliseconds)\(form)")
        var headers: HTTPHeaders = [
            "Last-Modified": HTTPDate.text(Int(taken.milliseconds / 1_000)),
            "Cache-Control": "\(isPublic && !isGated ? "public" : "private"), max-age=5",
            "X-Content-Type-Options": "nosniff", "Cross-Origin-Resource-Policy": "cross-origin",
        ]
        // The same address yields different pictures depending on the token (RFC 9111 §4.1).
        if isGated { headers.add("Vary", "Authorization") }
        let (webP, jpeg) =
            isBlurred ? (preview.blurredWebP, preview.blurredJPEG) : (preview.webP, preview.jpeg)
        return HTTPResponse(
            to: call.request, tag: tag, changed: taken, headers: headers, type: format.contentType,
            body: format == .webP ? webP : jpeg)
    }

    /// The sender, by a viewer's token; nil for an anonymous viewer, where these are allowed.
    private func admittedSender(of call: Call, to stream: StreamID) async throws -> Stage.Sender? {
        guard let sender = try call.access.requireViewer(of: stream)?.sender(in: stream) else { return nil }
        try await requireAdmitted(sender, to: stream)
        return sender
    }

    /// Whether the query carries a valid signature for this stream's previews.
    private func hasSignedAddress(_ call: Call, of stream: StreamID) -> Bool {
        guard let time = call.request.query("ts"), let lifetime = call.request.query("ttl"),
            let signature = call.request.query("sig")
        else { return false }
        return settings.paths.previews.isGood(
            for: stream, time: time, lifetime: lifetime, signature: signature, now: call.access.now())
    }

    /// Whether the signed address in the query still shows the latest picture.
    private func isAddress(of preview: StoredPreview, _ call: Call) -> Bool {
        guard let time = call.request.query("ts") else { return false }
        return settings.paths.previews.shows(
            pictureOf: preview.about.capturedAt, time: time, now: call.access.now())
    }
}
