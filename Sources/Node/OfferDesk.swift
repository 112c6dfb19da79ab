import Base
import Crypto
import Peer
import Wire

/// Reads offers and plans sessions, one at a time, and not where everybody else's requests wait.
///
/// How long that takes is decided by whoever wrote the offer. Here a flood of offers takes one thread at most, and
/// those who pin, mute or leave meanwhile do not notice.
actor OfferDesk {
    private let negotiator: Negotiator
    private var random = SecureRandom()

    init(negotiator: Negotiator) {
        self.negotiator = negotiator
    }

    /// - Parameter transport: our end of the session, as the answer describes it.
    func answer(
        _ text: String, for purpose: SessionOffer.Purpose, as transport: LocalTransport
    ) throws(SessionRefusal) -> (plan: SessionPlan, answer: String) {
        let description: SessionDescription
        do throws(WireError) {
            description = try SessionDescription(parsing: text)
        } catch {
            throw .malformedOffer(SessionOffer.Refusal.malformed(error).description)
        }
        do throws(SessionOffer.Refusal) {
            let offer = try SessionOffer(description, for: purpose)
            let (plan, answer) = try negotiator.answer(to: offer, as: transport, using: &random)
            return (plan, answer.text)
        } catch {
            throw SessionRefusal(error)
        }
    }
}

extension SessionRequest {
    /// What its offer may ask for.
    var offerPurpose: SessionOffer.Purpose {
        switch purpose {
        case .publish: .publish
        case .play: .play
        case .stage: isAudience ? .audience : .stage
        case .feed: .feed
        }
    }
}

extension SessionRefusal {
    init(_ refusal: SessionOffer.Refusal) {
        switch refusal.kind {
        case .malformed: self = .malformedOffer(refusal.description)
        case .unsupported: self = .unsupportedOffer(refusal.description)
        case .notAcceptable: self = .notAcceptable(refusal.description)
        }
    }
}
