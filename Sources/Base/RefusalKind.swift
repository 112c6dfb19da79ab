/// The general reason of a refusal, from which a protocol derives its status.
package enum RefusalKind: Sendable {
    /// The requester is not permitted to do this, whatever the state.
    case forbidden
    /// The thing that the request names does not exist.
    case missing
    /// The current state or the settings do not permit this now.
    case conflict
    /// The request is invalid in itself.
    case invalid
    /// A limit of a number or of a rate is reached.
    case limit
}
