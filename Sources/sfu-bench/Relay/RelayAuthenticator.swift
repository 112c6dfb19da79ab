import Base
import Crypto
import TURN
import Wire

/// The cryptography by which a client proves a relay's password.
///
/// `TURN` itself has no cryptography.
struct RelayAuthenticator: TURNAuthenticator {
    func hmacSHA1(key: Span<UInt8>, _ message: Span<UInt8>) -> [UInt8] { HMAC.sha1(key: key, message) }
    func md5(_ message: Span<UInt8>) -> [UInt8]? { MessageDigest.md5(message) }
}
