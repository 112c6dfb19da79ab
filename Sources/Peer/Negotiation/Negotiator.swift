import Wire

/// Answers offers: decides what each m-line becomes, for the client as an answer, for the media path as a plan.
///
/// - Source: RFC 9429 §5.3 (answers), RFC 9143 §7.3 (BUNDLE), RFC 9725 §4.2 (WHIP).
package struct Negotiator: Sendable {
    /// The same for all sessions of a node.
    package let policy: NegotiationPolicy

    package init(policy: NegotiationPolicy = NegotiationPolicy()) {
        self.policy = policy
    }

    /// Answers an offer.
    ///
    /// - Throws: a refusal if nothing useful is left. A publisher's m-lines are accepted all or none, because RFC
    ///   9725 §4.4 allows no partial answers.
    package func answer(
        to offer: SessionOffer, as transport: LocalTransport, using random: inout some RandomNumberGenerator
    ) throws(SessionOffer.Refusal) -> (plan: SessionPlan, description: SessionDescription) {
        var lines: [NegotiatedLine?] = []
        var problem: SessionOffer.Refusal?
        var registry = ExtensionRegistry()
        for offered in offer.media {
            do throws(SessionOffer.Refusal) {
                lines.append(try line(offered, of: offer, registry: &registry))
            } catch {
                if offer.purpose == .publish { throw error }
                problem = problem ?? error
                lines.append(nil)
            }
        }
        // One path must not be measured by two kinds of packet feedback.
        if lines.contains(where: { $0?.slotExtensions.transportSequenceNumber != nil }) {
            for index in lines.indices { lines[index]?.refuseCongestionControl() }
        }
        let channels = try dataChannels(of: offer)
        guard channels != nil || lines.contains(where: { $0?.isActive == true }) else {
            throw problem ?? .noMedia
        }
        let identifiers = SlotIdentifiers(for: lines, of: offer, using: &random)
        let plan = plan(lines, channels, of: offer, identifiers, registry)
        var answer = AnswerWriter(
            offer: offer, transport: transport, policy: policy, bundle: plan.bundledMIDs)
        for (offered, line) in zip(offer.media, lines) {
            if let line {
                answer.append(line, identifiers.slot(of: line))
            } else if offered.mid == plan.dataChannel?.mid {
                answer.appendDataChannels(offered)
            } else {
                answer.appendRejected(offered)
            }
        }
        return (plan, answer.finish(sessionID: random.next() >> 1, isMixed: offer.allowsMixedExtensions))
    }

    /// Negotiates one m-line; nil if it is rejected while the rest of the answer stands.
    private func line(
        _ offered: OfferedMedia, of offer: SessionOffer, registry: inout ExtensionRegistry
    ) throws(SessionOffer.Refusal) -> NegotiatedLine? {
        guard !offered.isRejected, let kind = offered.kind else { return nil }
        guard offered.isBundled else { throw .notBundled(offered.mid) }
        guard offered.hasSupportedTransport else { throw .unsupportedTransport(offered.mid) }
        let publishes = offer.publishes(offered)
        let formats = policy.formats(of: offered, publishing: publishes)
        guard !formats.isEmpty else { throw .noUsableCodec(offered.mid) }
        return NegotiatedLine(
            offered, kind, formats: formats, publishes: publishes, receives: offer.receives(offered),
            registry: &registry)
    }

    /// The first data channel m-line, if the endpoint has a use for it.
    private func dataChannels(of offer: SessionOffer) throws(SessionOffer.Refusal) -> DataChannelPlan? {
        guard offer.purpose.hasDataChannels else { return nil }
        do throws(WireError) {
            for offered in offer.media where !offered.isRejected && offered.isBundled {
                if let plan = try DataChannelPlan(offered.description, mid: offered.mid) { return plan }
            }
        } catch {
            throw .malformed(error)
        }
        return nil
    }

    private func plan(
        _ lines: [NegotiatedLine?], _ channels: DataChannelPlan?, of offer: SessionOffer,
        _ identifiers: SlotIdentifiers,
        _ registry: ExtensionRegistry
    ) -> SessionPlan {
        var plan = SessionPlan(remoteCredentials: offer.credentials, fingerprints: offer.fingerprints)
        plan.beginsHandshake = offer.isPassive
        let accepted = lines.compactMap(\.self)
        for line in accepted {
            if line.publishes { plan.sources.append(line.source) }
            if let slot = identifiers.slot(of: line) {
                plan.slots.append(line.slot(slot, isMixed: offer.allowsMixedExtensions))
            }
        }
        plan.publishedExtensions = registry.published
        let feedback = accepted.filter(\.publishes).map(\.feedback)
        if feedback.contains(where: { $0.contains(.transportWide) }) {
            plan.congestionFeedback = .transportWide
        } else if feedback.contains(where: { $0.contains(.receiverEstimate) }) {
            plan.congestionFeedback = .receiverEstimate
        }
        // RFC 5506 describes one m-line; a BUNDLE is one RTP session, and Safari offers it for video only.
        plan.allowsReducedSizeRTCP = accepted.contains { $0.offered.description.allowsReducedSizeRTCP }
        plan.dataChannel = channels
        let mids = accepted.map(\.offered.mid) + (channels.map { [$0.mid] } ?? [])
        plan.bundledMIDs = offer.bundle.map { $0.filter(mids.contains) } ?? mids
        return plan
    }
}
