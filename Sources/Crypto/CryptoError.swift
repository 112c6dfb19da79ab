import COpenSSL

/// OpenSSL refused to do something that should always work.
package struct CryptoError: Error, Equatable, Sendable, CustomStringConvertible {
    /// What was tried.
    package let operation: String
    /// OpenSSL's own words; empty if it gave no reason.
    package let reason: String

    /// For logs and operators.
    package var description: String {
        reason.isEmpty ? "\(operation) failed" : "\(operation) failed: \(reason)"
    }

    /// Takes the reason from OpenSSL's error queue of this thread, and empties the queue.
    init(_ operation: String) {
        self.operation = operation
        reason = Self.takeReason()
    }

    /// The latest entry of this thread's error queue, which is empty afterwards.
    static func takeReason() -> String {
        let code = ERR_peek_last_error()
        ERR_clear_error()
        guard code != 0, let text = unsafe ERR_reason_error_string(code) else { return "" }
        return unsafe String(cString: text)
    }
}
