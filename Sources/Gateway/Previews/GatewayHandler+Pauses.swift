import Base
import HTTP
import Node
import Stage

/// The pause picture, which viewers see while the host's camera is off.
extension GatewayHandler {
    /// `PUT /v1/streams/{stream}/pause-picture`: stores a picture, for the host and admins.
    ///
    /// Only the signature is checked here: untrusted pictures are decoded in the transcoder's process, never in this
    /// one.
    func choosePausePicture(_ call: Call) async throws -> HTTPResponse {
        let stream = try await moderatedStream(call)
        guard call.request.body.count <= Node.pausePictureLimit else {
            throw Problem(413, nil, "A pause picture can have up to \(Node.pausePictureLimit) bytes.")
        }
        guard Self.isPicture(call.request.body) else {
            throw Problem(415, nil, "A pause picture must be a JPEG, WebP or PNG file.")
        }
        guard await service.setPausePicture(call.request.body, of: stream) else {
            throw Problem(503, nil, "The server has no room for this picture.")
        }
        return HTTPResponse(status: 204)
    }

    /// `DELETE /v1/streams/{stream}/pause-picture`: returns to the default, the last frame blurred.
    func dropPausePicture(_ call: Call) async throws -> HTTPResponse {
        guard await service.setPausePicture(nil, of: try await moderatedStream(call)) else {
            // The file could not be deleted, and the picture would be back after a restart.
            throw StageRefusal.storage("")
        }
        return HTTPResponse(status: 204)
    }

    /// Whether a file begins with the signature of JPEG, PNG or WebP.
    private static func isPicture(_ bytes: [UInt8]) -> Bool {
        bytes.starts(with: [0xFF, 0xD8, 0xFF])
            || bytes.starts(with: [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A])
            || bytes.count > 12 && bytes.starts(with: Array("RIFF".utf8))
                && bytes[8..<12].elementsEqual(Array("WEBP".utf8))
    }
}
