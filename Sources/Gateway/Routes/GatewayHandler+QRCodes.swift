import Base
import Codecs
import HTTP

/// QR codes of links and encoder settings, for phone cameras.
extension GatewayHandler {
    /// `POST /v1/qr-codes`: draws a text as SVG.
    ///
    /// The text is in the body and not in the query, because it may contain a key and addresses are logged. Any valid
    /// token will do.
    func drawQRCode(_ call: Call) throws -> HTTPResponse {
        guard try call.access.token() != nil else { throw Access.unauthorized("This requires a token.") }
        guard let text = try call.body().string("text"), let code = QRCode(text) else {
            var problem = JSONBody.invalid("text")
            problem.detail = "text must be 1 to \(QRCode.textLimit) bytes of UTF-8."
            throw problem
        }
        return HTTPResponse(
            status: 200,
            headers: [
                "Content-Type": "image/svg+xml", "Cache-Control": "no-store",
                "X-Content-Type-Options": "nosniff",
            ], body: Array(code.svg.utf8))
    }
}
