import Base
import Wire

/// A STUN message together with its bytes: what tests ask needs no `Span`, which `#expect` cannot hold.
package struct ReceivedSTUN {
    package let bytes: [UInt8]
    package let message: STUNMessage

    package init(_ bytes: [UInt8]) throws(WireError) {
        self.bytes = bytes
        message = try STUNMessage(parsing: bytes.span)
    }

    package var fingerprint: STUNMessage.Fingerprint { message.fingerprint(in: bytes.span) }
    package var username: String? { message.username(in: bytes.span) }

    package func isAuthentic(key: [UInt8]) -> Bool {
        message.isAuthentic(bytes.span, key: key, by: SHA1Authenticator())
    }

    package func xorMappedAddress() throws(WireError) -> TransportAddress? {
        try message.xorMappedAddress(in: bytes.span)
    }

    package func errorCode() throws(WireError) -> STUNErrorCode? {
        try message.errorCode(in: bytes.span)
    }

    package func unknownAttributes() throws(WireError) -> [STUNAttribute] {
        try message.unknownAttributes(in: bytes.span)
    }
}
