import Base

/// How much a node takes on; may change while it runs, for what begins from then on.
package struct NodeLimits: Equatable, Sendable {
    /// As in `NodeConfiguration`.
    package var sessions: Int
    package var sessionsOfAddress: Int
    package var compositions: Int
    package var renditions: Int

    package init(sessions: Int, sessionsOfAddress: Int, compositions: Int, renditions: Int) {
        self.sessions = sessions
        self.sessionsOfAddress = sessionsOfAddress
        self.compositions = compositions
        self.renditions = renditions
    }
}

extension NodeConfiguration {
    package var limits: NodeLimits {
        NodeLimits(
            sessions: sessionLimit, sessionsOfAddress: sessionLimitForAddress, compositions: compositionLimit,
            renditions: renditionLimit)
    }
}

extension Node {
    /// What is there already stays, even where it is more than that.
    package func setLimits(_ limits: NodeLimits) {
        guard limits != self.limits else { return }
        self.limits = limits
        live.setLimits(limits)
        log.info(
            "limits",
            [
                "sessions": limits.sessions, "sessions-of-address": limits.sessionsOfAddress,
                "compositions": limits.compositions, "renditions": limits.renditions,
            ])
    }
}
