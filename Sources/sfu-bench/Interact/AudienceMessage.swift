import Foundation

/// A message to a viewer, as far as its contents are counted.
struct AudienceMessage: Decodable, Equatable, Sendable {
    struct Comment: Decodable, Equatable, Sendable {
        let text: String
    }

    struct Gift: Decodable, Equatable, Sendable {
        let number: Int
        /// Contains the time at which the gift was sent, like the text of a comment.
        let name: String?
    }

    struct Reaction: Decodable, Equatable, Sendable {
        let total: Int
    }

    let type: String
    let comments: [Comment]?
    /// How many comments were left out.
    let more: Int?
    let gifts: [Gift]?
    let reactions: [String: Reaction]?
    /// Of a refusal: the rule that was broken.
    let rule: String?

    /// A text that contains the time at which it was sent, in nanoseconds of the monotonic clock.
    static func text(sentAt time: Int64) -> String { "\(time) hello to all" }

    /// The time in a text; nil if it was not written by this tool, whose clock is never negative.
    static func sentAt(_ text: String) -> Int64? {
        text.split(separator: " ").first.flatMap { Int64($0) }.flatMap { $0 >= 0 ? $0 : nil }
    }
}

/// Remembers the latest messages together with their parsed form.
///
/// All viewers receive the same messages, so each is parsed once instead of thousands of times.
struct MessageMemory {
    /// Messages that are remembered; the oldest is replaced.
    private static let limit = 32

    private var messages: [(bytes: [UInt8], message: AudienceMessage?)] = []
    /// Index of the oldest message, once there are `limit` of them.
    private var oldest = 0
    /// How many messages were parsed.
    private(set) var parsed = 0

    /// Parses a message, or returns the remembered result.
    /// - Returns: nil for bytes that are not a message.
    mutating func message(_ bytes: ArraySlice<UInt8>) -> AudienceMessage? {
        // From the newest to the oldest: the next viewer probably receives the same message as the previous one.
        for place in messages.indices {
            let index = (oldest + messages.count - 1 - place) % messages.count
            if Self.isSame(messages[index].bytes, bytes) { return messages[index].message }
        }
        parsed += 1
        let message = try? JSONDecoder().decode(AudienceMessage.self, from: Data(bytes))
        if messages.count < Self.limit {
            messages.append((Array(bytes), message))
        } else {
            messages[oldest] = (Array(bytes), message)
            oldest = (oldest + 1) % Self.limit
        }
        return message
    }

    private static func isSame(_ one: [UInt8], _ other: ArraySlice<UInt8>) -> Bool {
        guard one.count == other.count else { return false }
        return one.withUnsafeBytes { first in
            other.withUnsafeBytes { second in
                guard let first = first.baseAddress, let second = second.baseAddress else { return true }
                return memcmp(first, second, one.count) == 0
            }
        }
    }
}
