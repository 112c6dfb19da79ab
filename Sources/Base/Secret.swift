/// A key, password or token that is not printed by accident.
package struct Secret<Value: Sendable>: Sendable, CustomStringConvertible, CustomDebugStringConvertible,
    CustomReflectable
{
    /// The value.
    ///
    /// The name is conspicuous on purpose: each use deserves a review.
    package let exposed: Value

    /// - Parameter value: is not wiped when it is released; `SecretBytes` is for that.
    package init(_ value: Value) {
        exposed = value
    }

    /// What logs and string interpolation print.
    package var description: String { "<secret>" }
    /// What a debugger's `po` and `String(reflecting:)` print.
    package var debugDescription: String { "<secret>" }
    /// Without children, so that `dump` prints nothing.
    package var customMirror: Mirror { Mirror(self, children: []) }
}
