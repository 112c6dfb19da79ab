import Foundation

/// What a viewer is told, as far as it is counted.
struct AudienceMessage: Decodable, Equatable, Sendable {
    struct Comment: Decodable, Equatable, Sendable {
        let text: String
    }

    struct Gift: Decodable, Equatable, Sendable {
        let number: Int
        /// Tells when it was given, as a comment's text does.
        let name: String?
    }

    struct Reaction: Decodable, Equatable, Sendable {
        let total: Int
    }

    let type: String
    let comments: [Comment]?
    /// Comments that were left out.
    let more: Int?
    let gifts: [Gift]?
    let reactions: [String: Reaction]?
    /// Which rule something broke that was refused.
    let rule: String?

    /// A text that tells when it was sent, in nanoseconds.
    static func text(sentAt time: Int64) -> String { "\(time) hello to all" }

    /// When a text was sent; nil for somebody else's.
    static func sentAt(_ text: String) -> Int64? { text.split(separator: " ").first.flatMap { Int64($0) } }
}

/// The latest messages that came, as they were understood.
///
/// All viewers are told the same, so that each message is parsed once and not by each of thousands.
struct MessageMemory {
    private static let limit = 32

    private var messages: [(bytes: [UInt8], message: AudienceMessage?)] = []
    private var oldest = 0
    /// Messages that had to be parsed.
    private(set) var parsed = 0

    /// - Returns: nil for what is no message.
    mutating func message(_ bytes: ArraySlice<UInt8>) -> AudienceMessage? {
        // What came last is what the next viewer is told, too.
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
