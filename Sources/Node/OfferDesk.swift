import Base
import Crypto
import Peer
import Synchronization
import Wire

/// Reads offers and plans sessions, one at a time, and not where everybody else's requests wait.
///
/// How long that takes is decided by whoever wrote the offer. Here a flood of offers takes one thread at most, and
/// those who pin, mute or leave meanwhile do not notice.
actor OfferDesk {
    /// Offers of strangers that wait to be read; some are read in a millisecond, most in a fifth of that.
    private static let limit = 256

    private let negotiator: Negotiator
    private let waiting = Mutex(0)
    private var random = SecureRandom()

    init(negotiator: Negotiator) {
        self.negotiator = negotiator
    }

    /// - Parameter transport: our end of the session, as the answer describes it.
    nonisolated func answer(
        _ request: SessionRequest, as transport: LocalTransport
    ) async throws(SessionRefusal) -> (plan: SessionPlan, answer: String) {
        try begin(isStrangers: request.sender == nil)
        defer { end() }
        return try await read(request.offer, for: request.offerPurpose, as: transport)
    }

    /// Reads what a client says of its ICE credentials and candidates later.
    /// - Parameter isStrangers: whether the session was made without a token.
    nonisolated func read(
        fragment text: String, isStrangers: Bool
    ) async throws(SessionRefusal) -> SDPFragment {
        try begin(isStrangers: isStrangers)
        defer { end() }
        return try await read(fragment: text)
    }

    private nonisolated func begin(isStrangers: Bool) throws(SessionRefusal) {
        // Those who are known need not wait behind as many as strangers may.
        let limit = isStrangers ? Self.limit : 2 * Self.limit
        let hasRoom = waiting.withLock { waiting in
            guard waiting < limit else { return false }
            waiting += 1
            return true
        }
        guard hasRoom else { throw .overloaded }
    }

    private nonisolated func end() { waiting.withLock { $0 -= 1 } }

    private func read(fragment text: String) throws(SessionRefusal) -> SDPFragment {
        do throws(WireError) {
            return try SDPFragment(parsing: text)
        } catch {
            throw .malformedOffer(SessionOffer.Refusal.malformed(error).description)
        }
    }

    private func read(
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
