/// What became of one attempt to deliver a webhook.
package enum WebhookAnswer: Sendable, Equatable {
    /// - Parameter retryAfter: milliseconds that the receiver asks to wait.
    case status(Int, retryAfter: Int64?)
    /// No response: the receiver is down, too slow, or there is none.
    case unreachable(String)
}

/// Brings a webhook to its receiver, once.
package protocol WebhookTransport: Sendable {
    /// - Parameter headers: lines `Name: value`.
    func post(to url: String, headers: [String], body: [UInt8]) async -> WebhookAnswer
}
