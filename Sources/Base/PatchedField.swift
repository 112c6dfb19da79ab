/// What a merge patch says of a value that may be taken away, which it does by `null`.
/// - Source: RFC 7396.
package enum PatchedField<Value: Equatable & Sendable>: Equatable, Sendable {
    case keep
    case clear
    case set(Value)

    /// Changes the value as the patch says.
    package func apply(to value: inout Value?) {
        switch self {
        case .keep: break
        case .clear: value = nil
        case .set(let new): value = new
        }
    }
}
