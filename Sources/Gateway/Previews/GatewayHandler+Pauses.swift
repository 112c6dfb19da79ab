import Base
import HTTP
import Node
import Stage

/// What viewers see while the host's camera is off.
extension GatewayHandler {
    /// `PUT /v1/streams/{stream}/pause-picture`.
    ///
    /// Only the first bytes are looked at here: a stranger's picture is decoded in the transcoder.
    func choosePausePicture(_ call: Call) async throws -> HTTPResponse {
        let stream = try await moderatedStream(call)
        guard call.request.body.count <= Node.pausePictureLimit else {
            throw Problem(413, nil, "A pause picture has at most \(Node.pausePictureLimit) bytes.")
        }
        guard Self.isPicture(call.request.body) else {
            throw Problem(415, nil, "A pause picture is a JPEG, WebP or PNG file.")
        }
        guard await service.setPausePicture(call.request.body, of: stream) else {
            throw Problem(503, nil, "There is no room for this picture.")
        }
        return HTTPResponse(status: 204)
    }

    /// `DELETE /v1/streams/{stream}/pause-picture`.
    func dropPausePicture(_ call: Call) async throws -> HTTPResponse {
        guard await service.setPausePicture(nil, of: try await moderatedStream(call)) else {
            // After a restart it would be there again.
            throw StageRefusal.storage("")
        }
        return HTTPResponse(status: 204)
    }

    private static func isPicture(_ bytes: [UInt8]) -> Bool {
        bytes.starts(with: [0xFF, 0xD8, 0xFF])
            || bytes.starts(with: [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A])
            || bytes.count > 12 && bytes.starts(with: Array("RIFF".utf8))
                && bytes[8..<12].elementsEqual(Array("WEBP".utf8))
    }
}
