/// Why bytes from the network could not be parsed, or a value not written.
package enum WireError: Error, Equatable, Sendable {
    /// The bytes end before the value does.
    case truncated
    /// A field has a value that its format forbids, or that exceeds a limit of the parser.
    case invalid(Field)
    /// The buffer being written is full.
    case noRoom

    /// Names a field of a format, such as `rtp.version`; each format declares its own next to its parser.
    package struct Field: Equatable, Sendable, CustomStringConvertible {
        /// `format.field`, as in logs and refusals.
        package let description: String

        /// - Parameter name: as `format.field`.
        package init(_ name: String) {
            description = name
        }
    }
}

extension WireError: CustomStringConvertible {
    /// Part of a sentence, for logs and error messages.
    package var description: String {
        switch self {
        case .truncated: "the data ends too early"
        case .invalid(let field): "\(field) is invalid"
        case .noRoom: "there is no room for the data"
        }
    }
}
