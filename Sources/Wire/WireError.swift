/// Why bytes from the network were not understood.
package enum WireError: Error, Equatable, Sendable {
    /// The bytes end before the value does.
    case truncated
    /// A field holds what its format forbids.
    case invalid(Field)
    /// There is no room left in the buffer being written.
    case noRoom

    /// Names a field of a format, such as `rtp.version`; each format declares its own beside its parser.
    package struct Field: Equatable, Sendable, CustomStringConvertible {
        /// `format.field`, as it stands in logs and refusals.
        package let description: String

        package init(_ name: String) {
            description = name
        }
    }
}
