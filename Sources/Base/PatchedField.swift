/// What a JSON merge patch does to an optional value, which `null` removes.
/// - Source: RFC 7396.
package enum PatchedField<Value: Equatable & Sendable>: Equatable, Sendable {
    /// The patch does not contain the field.
    case keep
    /// The patch contains `null`.
    case clear
    /// The patch contains a new value.
    case set(Value)

    /// Applies the patch to a value.
    package func apply(to value: inout Value?) {
        switch self {
        case .keep: break
        case .clear: value = nil
        case .set(let new): value = new
        }
    }
}
