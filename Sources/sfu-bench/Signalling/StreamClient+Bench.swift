import Foundation
import RostrumClient

extension RostrumServer {
    /// A stream, as whoever has this token meets it.
    func stream(_ id: String, as token: String?) -> StreamClient {
        stream(id, tokens: token.map { .fixed($0) } ?? .none)
    }
}

/// What a stream's shop has.
struct GiftCatalogue: Encodable, Sendable {
    struct Kind: Encodable, Sendable {
        let id: String
        let name: String
        let picture: String
        let price: Int
    }

    let currency: String
    let kinds: [Kind]
}

/// One gift, as the shop that sold it tells of it.
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

/// What a host asks the audience.
struct PollQuestion: Encodable, Sendable {
    let question: String
    let options: [String]
}

extension StreamClient {
    /// Has the audience see what there is to give, by the stream's host.
    func sell(_ catalogue: GiftCatalogue) async throws(RostrumError) {
        try await call("PATCH", "/interaction", ["gifts": catalogue])
    }

    /// Asks the audience, by the stream's host.
    /// - Returns: the poll's number.
    func openPoll(_ question: PollQuestion) async throws -> Int {
        struct Opened: Decodable {
            let number: Int
        }
        let answer = try await call("POST", "/polls", question)
        return try JSONDecoder().decode(Opened.self, from: answer).number
    }
}
