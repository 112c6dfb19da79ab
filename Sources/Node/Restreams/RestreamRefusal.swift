import Restream

/// Why a target was not added, shown or removed.
package enum RestreamRefusal: Error, Equatable, Sendable {
    /// The server has no restreams, or is stopping.
    case unavailable
    /// The stream's list of targets refuses the change.
    case list(RestreamList.Refusal)
    /// The stream has no target with this number.
    case unknown
    /// The stream itself refuses, for example because it has ended.
    case stage(StageRefusal)
}
