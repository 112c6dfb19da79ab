import Restream

/// Why a target was not added, shown or removed.
package enum RestreamRefusal: Error, Equatable, Sendable {
    /// The server has no restreams.
    case unavailable
    /// The server is about to stop, most likely to be restarted.
    case stopping
    /// The stream's list of targets refuses the change.
    case list(RestreamList.Refusal)
    /// The stream has no target with this number.
    case unknown
    /// The stream itself refuses, for example because it has ended.
    case stage(StageRefusal)
}
