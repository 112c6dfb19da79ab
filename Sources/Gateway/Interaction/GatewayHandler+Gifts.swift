import Base
import HTTP
import Interaction
import Node
import Stage

/// Gifts reported by shops, their ledger, and the ranks of participants.
extension GatewayHandler {
    /// `PUT .../gifts/{key}`: records a gift; idempotent, as the shop's key identifies it (RFC 9110 §9.2.2).
    func giveGift(_ call: Call) async throws -> HTTPResponse {
        let key = call.parameters["key"] ?? ""
        let draft = try call.participantBody().gift(key: key)
        guard case .gift(let gift) = try await interact(call, .give(draft)) else {
            // Never happens: a `give` command is answered with the gift, recorded now or before.
            throw StageRefusal.overloaded
        }
        return Self.fresh(gift.ledgerJSON)
    }

    /// `GET .../gifts`: a page of the ledger, in order, from after the number in the query.
    func listGifts(_ call: Call) async throws -> HTTPResponse {
        let (stream, _, sender) = try call.sender()
        // Numbers grow, so a shop can poll with the last one that it has seen.
        let after = try number("after", of: call) ?? 0
        let limit = try number("limit", of: call) ?? Self.usualPage
        guard (1...Self.longestPage).contains(limit) else { throw Interaction.Refusal.invalid("limit") }
        return Self.fresh(try await service.gifts(of: stream, after: after, limit: limit, as: sender))
    }

    /// `GET .../ranks/{rank}`: the participants who gave most, or took part most, in a stream or a day.
    func showRank(_ call: Call) async throws -> HTTPResponse {
        let stream = try call.stream
        let token = try call.access.requireViewer(of: stream)
        guard let rank = call.parameters["rank"].flatMap(RankName.init) else {
            throw Problem(404, "unknown-rank", "The rank must be givers or fans.")
        }
        guard let period = RankPeriod(rawValue: call.request.query("period") ?? "stream") else {
            throw Interaction.Refusal.invalid("period")
        }
        return Self.fresh(
            try await service.rank(rank, of: stream, period: period, as: token?.sender(in: stream)))
    }
}

extension JSONBody {
    /// A gift as a shop reports it; the price is in the currency's smallest unit.
    fileprivate func gift(key: String) throws -> Gift.Draft {
        guard let giver = try string("giver").flatMap({ ParticipantID($0) }) else {
            throw Interaction.Refusal.invalid("giver")
        }
        guard let kind = try string("gift") else { throw Interaction.Refusal.invalid("gift") }
        guard let price = try object("price"), let amount = try price.integer("amount"),
            let currency = try price.string("currency")
        else { throw Interaction.Refusal.invalid("price") }
        return Gift.Draft(
            key: key, giver: giver, name: try string("name"), kind: kind, count: try integer("count") ?? 1,
            price: amount, currency: currency)
    }

    /// A catalogue of gifts; nil if it is missing or `null`.
    func giftCatalogue(_ name: String) throws -> GiftCatalogue? {
        guard let catalogue = try object(name) else { return nil }
        guard let currency = try catalogue.string("currency"), let kinds = try catalogue.objects("kinds")
        else {
            throw Interaction.Refusal.invalid(name)
        }
        return GiftCatalogue(
            currency: currency,
            kinds: try kinds.map { kind in
                guard let id = try kind.string("id"), let label = try kind.string("name"),
                    let picture = try kind.string("picture"), let price = try kind.integer("price")
                else { throw Interaction.Refusal.invalid(name) }
                return GiftCatalogue.Kind(id: id, name: label, picture: picture, price: price)
            })
    }
}
