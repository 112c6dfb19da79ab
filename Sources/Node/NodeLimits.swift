import Base

/// How much a node takes on; may change while it runs, for what begins from then on.
package struct NodeLimits: Equatable, Sendable {
    /// As in `NodeConfiguration`.
    package var sessions: Int
    /// Of one address, without a token.
    package var sessionsOfAddress: Int
    /// At the same time.
    package var compositions: Int
    /// Tracks that they are made of at the same time.
    package var renditions: Int
    package var conversions: Int

    package init(
        sessions: Int, sessionsOfAddress: Int, compositions: Int, renditions: Int, conversions: Int
    ) {
        self.sessions = sessions
        self.sessionsOfAddress = sessionsOfAddress
        self.compositions = compositions
        self.renditions = renditions
        self.conversions = conversions
    }
}

extension NodeConfiguration {
    /// Those that may change while the node runs.
    package var limits: NodeLimits {
        NodeLimits(
            sessions: sessionLimit, sessionsOfAddress: sessionLimitForAddress, compositions: compositionLimit,
            renditions: renditionLimit, conversions: conversionLimit)
    }
}

extension SessionCensus.Limits {
    init(_ limits: NodeLimits) {
        self.init(ofAll: limits.sessions, ofStrangersAddress: limits.sessionsOfAddress)
    }
}

extension Node {
    /// What is there already stays, even where it is more than that.
    package func setLimits(_ limits: NodeLimits) {
        guard limits != live.limits else { return }
        live.setLimits(limits)
        log.info(
            "limits",
            [
                "sessions": limits.sessions, "sessions-of-address": limits.sessionsOfAddress,
                "compositions": limits.compositions, "renditions": limits.renditions,
                "conversions": limits.conversions,
            ])
    }
}
