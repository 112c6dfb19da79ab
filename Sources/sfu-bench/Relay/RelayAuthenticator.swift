import Base
import Crypto
import TURN
import Wire

/// What a relay's password is shown by.
struct RelayAuthenticator: TURNAuthenticator {
    func hmacSHA1(key: Span<UInt8>, _ message: Span<UInt8>) -> [UInt8] { HMAC.sha1(key: key, message) }
    func md5(_ message: Span<UInt8>) -> [UInt8]? { MessageDigest.md5(message) }
}
