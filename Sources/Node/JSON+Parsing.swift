import Base
import Foundation

extension JSON {
    /// Parses a document that a stranger may have written, in a time that its length limits.
    ///
    /// `JSONDecoder` has no such limit where a value's type is unknown: each type that is tried in vain throws an error
    /// that holds the whole path to the value. 192 kB of small arrays 500 levels deep took minutes.
    ///
    /// Of members with the same name, one is kept; a comma after the last value is let pass, as by `JSONDecoder`.
    /// - Parameter bytes: the document, in UTF-8.
    /// - Returns: nil if it is malformed, is nested deeper than 512 levels, or holds a number beyond a `Double`.
    /// - Source: RFC 8259.
    package init?(parsing bytes: [UInt8]) {
        guard let value = try? JSONSerialization.jsonObject(with: Data(bytes), options: .fragmentsAllowed)
        else {
            return nil
        }
        self.init(value)
    }

    /// Converts what `JSONSerialization` makes of a document.
    private init?(_ value: Any) {
        // Arrays and objects come first: to try them as a class would convert all that is in them.
        switch value {
        case let values as [Any]:
            var elements: [JSON] = []
            elements.reserveCapacity(values.count)
            for value in values {
                guard let element = JSON(value) else { return nil }
                elements.append(element)
            }
            self = .array(elements)
        case let values as [String: Any]:
            var members: [String: JSON] = [:]
            for (name, value) in values {
                guard let member = JSON(value) else { return nil }
                members[name] = member
            }
            self = .object(members)
        case let text as String: self = .string(text)
        case let number as NSNumber:
            // A number of one character's type is how it tells `true` and `false` from 1 and 0.
            if String(cString: number.objCType) == "c" {
                self = .bool(number.boolValue)
            } else {
                guard number.doubleValue.isFinite else { return nil }
                self = .number(number.doubleValue)
            }
        case is NSNull: self = .null
        default: return nil
        }
    }
}
