// Fuzz entry of tokens: bytes have one text only, and claims that are read are the same when they are signed and read
// again.
// Seeds: Tokens/*.txt

import Base
import Crypto

func fuzzToken(_ input: Span<UInt8>) {
    var bytes: [UInt8] = []
    for index in input.indices { bytes.append(input[index]) }
    if let decoded = Base64URL.decode(bytes), !Base64URL.encode(decoded).utf8.elementsEqual(bytes) {
        fatalError("two texts of the same bytes")
    }
    guard Base64URL.decode(Base64URL.encode(bytes).utf8) == bytes else {
        fatalError("bytes are others when they are read again")
    }
    let text = String(decoding: bytes, as: UTF8.self)
    guard let token = try? JSONWebToken(parsing: text) else { return }
    guard text.utf8.count <= JSONWebToken.maximumLength else {
        fatalError("a token of \(text.utf8.count) bytes")
    }
    guard let claims = try? token.claims(Claims.self), let signed = JSONWebToken.sign(claims, with: key.span),
        signed.utf8.count <= JSONWebToken.maximumLength
    else { return }
    guard let again = try? JSONWebToken(parsing: signed), again.isSigned(with: key.span),
        let same = try? again.claims(Claims.self), same == claims
    else { fatalError("claims are others when they are read again: \(signed)") }
}

private let key = Array("the key of this fuzz entry, with 32 bytes".utf8)

/// Of each type that claims have.
private struct Claims: Codable, Equatable {
    var iss: String?
    var sub: String?
    var exp: Double?
    var capabilities: [String]?
}
