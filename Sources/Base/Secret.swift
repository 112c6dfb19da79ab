/// A key, password or token, which cannot be printed by accident.
package struct Secret<Value: Sendable>: Sendable, CustomStringConvertible, CustomDebugStringConvertible,
    CustomReflectable
{
    /// Deliberately long to read: each use is a place to look at.
    package let exposed: Value

    package init(_ value: Value) {
        exposed = value
    }

    package var description: String { "<secret>" }
    package var debugDescription: String { "<secret>" }
    package var customMirror: Mirror { Mirror(self, children: []) }
}
