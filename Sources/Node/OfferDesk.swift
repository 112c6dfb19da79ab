import Base
import Crypto
import Peer
import Synchronization
import Wire

/// Parses SDP offers and plans sessions, one at a time, on an actor of its own.
///
/// The sender of an offer controls how long parsing takes. On a separate actor, a flood of offers occupies at most
/// one thread and does not delay other requests, such as a pin, a mute or a leave.
actor OfferDesk {
    /// The number of offers and fragments that may wait before those of clients without a token are refused.
    ///
    /// Most are answered in 0.2 ms, some in 1 ms, so a full queue is worked off in about a quarter of a second at
    /// worst.
    private static let limit = 256

    private let negotiator: Negotiator
    /// Offers and fragments that were accepted and are not answered yet; read without waiting for the actor.
    private let waiting = Mutex(0)
    private var random = SecureRandom()

    init(negotiator: Negotiator) {
        self.negotiator = negotiator
    }

    /// Parses an offer, and chooses what the session will send and receive.
    /// - Parameter transport: the server's end of the session, as the answer describes it.
    /// - Throws: `SessionRefusal.overloaded` if too many wait, or what is wrong with the offer.
    nonisolated func answer(
        _ request: SessionRequest, as transport: LocalTransport
    ) async throws(SessionRefusal) -> (plan: SessionPlan, answer: String) {
        try begin(isStrangers: request.sender == nil)
        defer { end() }
        return try await read(request.offer, for: request.offerPurpose, as: transport)
    }

    /// Parses an SDP fragment, in which a client sends ICE candidates or new credentials.
    /// - Parameter isStrangers: whether the session was made without a token.
    /// - Throws: `SessionRefusal.overloaded` if too many wait, or `.malformedOffer`.
    /// - Source: RFC 8840 §9 (`application/trickle-ice-sdpfrag`).
    nonisolated func read(
        fragment text: String, isStrangers: Bool
    ) async throws(SessionRefusal) -> SDPFragment {
        try begin(isStrangers: isStrangers)
        defer { end() }
        return try await read(fragment: text)
    }

    /// Reserves a place in the queue; every successful call needs one call of `end`.
    private nonisolated func begin(isStrangers: Bool) throws(SessionRefusal) {
        // Half of the places are reserved for clients with a token, so that anonymous ones cannot shut them out.
        let limit = isStrangers ? Self.limit : 2 * Self.limit
        let hasRoom = waiting.withLock { waiting in
            guard waiting < limit else { return false }
            waiting += 1
            return true
        }
        guard hasRoom else { throw .overloaded }
    }

    private nonisolated func end() { waiting.withLock { $0 -= 1 } }

    /// Runs on the actor; the caller holds a place in the queue.
    private func read(fragment text: String) throws(SessionRefusal) -> SDPFragment {
        do throws(WireError) {
            return try SDPFragment(parsing: text)
        } catch {
            throw .malformedOffer(SessionOffer.Refusal.malformed(error).description)
        }
    }

    /// Runs on the actor; the caller holds a place in the queue.
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
    /// What the offer may contain, by the endpoint and, on a stage, by the role in the token.
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
    /// Keeps the kind apart, because each becomes another HTTP status.
    init(_ refusal: SessionOffer.Refusal) {
        switch refusal.kind {
        case .malformed: self = .malformedOffer(refusal.description)
        case .unsupported: self = .unsupportedOffer(refusal.description)
        case .notAcceptable: self = .notAcceptable(refusal.description)
        }
    }
}
