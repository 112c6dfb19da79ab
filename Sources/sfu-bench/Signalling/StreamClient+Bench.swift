import Foundation
import RostrumClient

extension RostrumServer {
    /// A client for one stream that uses this token; nil for requests without one.
    func stream(_ id: String, as token: String?) -> StreamClient {
        stream(id, tokens: token.map { .fixed($0) } ?? .none)
    }
}

/// The gifts that a stream's audience can buy, as the API expects them.
struct GiftCatalogue: Encodable, Sendable {
    struct Kind: Encodable, Sendable {
        let id: String
        let name: String
        /// An emoji, or the address of a picture.
        let picture: String
        let price: Int
    }

    let currency: String
    let kinds: [Kind]
}

/// One gift, as the shop that sold it reports it to the server.
struct SoldGift: Encodable, Sendable {
    struct Price: Encodable, Sendable {
        let amount: Int
        let currency: String
    }

    let giver: String
    let name: String
    let gift: String
    let count: Int
    let price: Price
}

/// A poll to open, as the API expects it.
struct PollQuestion: Encodable, Sendable {
    let question: String
    let options: [String]
}

extension StreamClient {
    /// Sets the gifts that the audience can buy; requires the host's token.
    func sell(_ catalogue: GiftCatalogue) async throws(RostrumError) {
        try await call("PATCH", "/interaction", ["gifts": catalogue])
    }

    /// Opens a poll; requires the host's token.
    /// - Returns: the poll's number.
    func openPoll(_ question: PollQuestion) async throws -> Int {
        struct Opened: Decodable {
            let number: Int
        }
        let answer = try await call("POST", "/polls", question)
        return try JSONDecoder().decode(Opened.self, from: answer).number
    }
}
