/// Result of one attempt to deliver a webhook.
package enum WebhookAnswer: Sendable, Equatable {
    /// The receiver answered.
    /// - Parameter retryAfter: milliseconds from `Retry-After`; nil without the field.
    case status(Int, retryAfter: Int64?)
    /// No response: the receiver is down, too slow or unknown to DNS; the text is for logs.
    case unreachable(String)
}

/// Delivers a webhook with one attempt; tests replace it.
package protocol WebhookTransport: Sendable {
    /// - Parameter headers: lines `Name: value`.
    /// - Returns: once the receiver has answered or cannot be reached.
    func post(to url: String, headers: [String], body: [UInt8]) async -> WebhookAnswer
}
