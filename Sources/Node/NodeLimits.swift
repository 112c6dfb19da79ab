import Base

/// How much a node accepts.
///
/// Limits may change while the node runs. A new limit applies to what begins from then on; nothing that runs is ended
/// for it.
package struct NodeLimits: Equatable, Sendable {
    /// As `NodeConfiguration.sessionLimit`.
    package var sessions: Int
    /// Sessions without a token that one address may have; as `NodeConfiguration.sessionLimitForAddress`.
    package var sessionsOfAddress: Int
    /// Compositions at the same time.
    package var compositions: Int
    /// Tracks of which renditions are made at the same time.
    package var renditions: Int
    /// Publishers by RTMP or SRT whose pictures are re-encoded at the same time.
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
    /// The limits that may change while the node runs.
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
    /// Sets limits for what begins from now on; what exists stays, even if it exceeds them.
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
