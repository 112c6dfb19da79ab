import COpenSSL

/// A failure of OpenSSL in an operation that should always succeed.
package struct CryptoError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The operation that failed.
    package let operation: String
    /// OpenSSL's reason in its own words; empty if it gave none.
    package let reason: String

    /// For logs and operators.
    package var description: String {
        reason.isEmpty ? "\(operation) failed" : "\(operation) failed: \(reason)"
    }

    /// Takes the reason from this thread's OpenSSL error queue, and empties the queue.
    init(_ operation: String) {
        self.operation = operation
        reason = Self.takeReason()
    }

    /// Takes the latest entry of this thread's OpenSSL error queue, and empties the queue.
    static func takeReason() -> String {
        let code = ERR_peek_last_error()
        ERR_clear_error()
        guard code != 0, let text = unsafe ERR_reason_error_string(code) else { return "" }
        return unsafe String(cString: text)
    }
}
