/// What kind of no a refusal is, for whoever puts it into a protocol.
package enum RefusalKind: Sendable {
    /// This person may not, whatever the state.
    case forbidden
    /// What they name is not there.
    case missing
    /// Not now; the state or the settings stand against it.
    case conflict
    /// Makes no sense in itself.
    case invalid
    /// A limit is reached, of a number or of a time.
    case limit
}
