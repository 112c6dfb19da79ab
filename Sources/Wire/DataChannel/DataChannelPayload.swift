/// What an SCTP user message carries: its payload protocol identifier (PPID).
/// - Source: RFC 8831 §8; the two deprecated ones also RFC 8831 §6.6.
package enum DataChannelPayload: UInt32, Sendable {
    /// DCEP: opening a channel.
    case control = 50
    case string = 51
    /// A piece of a binary message of which more follows; read, but never written.
    case binaryPiece = 52
    case binary = 53
    /// A piece of a string of which more follows; read, but never written.
    case stringPiece = 54
    /// SCTP has no messages without bytes: one byte, which means nothing, stands for none.
    case emptyString = 56
    case emptyBinary = 57
}

/// One message of an application on a channel.
/// - Source: RFC 8831 §6.6.
package enum DataChannelMessage: Equatable, Sendable {
    /// The bytes should be UTF-8, but are not checked: who reads them as text has to.
    case string([UInt8])
    case binary([UInt8])

    /// A text message, in UTF-8.
    package init(_ text: String) {
        self = .string(Array(text.utf8))
    }

    /// Empty for an empty message, unlike what is sent for it.
    package var bytes: [UInt8] {
        switch self {
        case .string(let bytes), .binary(let bytes): bytes
        }
    }

    /// Nil for binary messages and for text that is not valid UTF-8.
    package var text: String? {
        guard case .string(let bytes) = self else { return nil }
        return String(validating: bytes, as: UTF8.self)
    }

    /// What has to be sent for it.
    package var encoded: (payload: DataChannelPayload, bytes: [UInt8]) {
        switch self {
        case .string(let bytes): bytes.isEmpty ? (.emptyString, [0]) : (.string, bytes)
        case .binary(let bytes): bytes.isEmpty ? (.emptyBinary, [0]) : (.binary, bytes)
        }
    }
}
