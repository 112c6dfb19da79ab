/// The kind of an SCTP user message, by its payload protocol identifier (PPID).
/// - Source: RFC 8831 §8; the two deprecated ones also RFC 8831 §6.6.
package enum DataChannelPayload: UInt32, Sendable {
    /// DCEP: opening a channel.
    case control = 50
    case string = 51
    /// A part of a binary message that continues in the next one; read but never written.
    case binaryPiece = 52
    case binary = 53
    /// A part of a string that continues in the next one; read but never written.
    case stringPiece = 54
    /// SCTP has no empty messages, so an empty one consists of one byte without meaning.
    case emptyString = 56
    case emptyBinary = 57
}

/// One application message on a channel.
/// - Source: RFC 8831 §6.6.
package enum DataChannelMessage: Equatable, Sendable {
    /// Should be UTF-8, but is not checked: a reader of the text must do that.
    case string([UInt8])
    case binary([UInt8])

    /// A text message, in UTF-8.
    package init(_ text: String) {
        self = .string(Array(text.utf8))
    }

    /// The content; empty for an empty message, which is sent as one byte.
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

    /// The payload identifier and bytes to send.
    package var encoded: (payload: DataChannelPayload, bytes: [UInt8]) {
        switch self {
        case .string(let bytes): bytes.isEmpty ? (.emptyString, [0]) : (.string, bytes)
        case .binary(let bytes): bytes.isEmpty ? (.emptyBinary, [0]) : (.binary, bytes)
        }
    }
}
