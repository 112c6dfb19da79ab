/// A key, password or token, which cannot be printed by accident.
package struct Secret<Value: Sendable>: Sendable, CustomStringConvertible, CustomDebugStringConvertible,
    CustomReflectable
{
    /// Deliberately long to read: each use is a place to look at.
    package let exposed: Value

    package init(_ value: Value) {
        exposed = value
    }

    /// What logs and string interpolation get.
    package var description: String { "<secret>" }
    /// What a debugger's `po` and `String(reflecting:)` get.
    package var debugDescription: String { "<secret>" }
    /// Empty, so that `dump` has nothing to show.
    package var customMirror: Mirror { Mirror(self, children: []) }
}
