import Restream

/// Why a target is not added, shown or removed.
package enum RestreamRefusal: Error, Equatable, Sendable {
    /// The server sends nothing on.
    case unavailable
    case list(RestreamList.Refusal)
    /// There is none of that number.
    case unknown
    case stage(StageRefusal)
}
