// Fuzz entry of JSON that strangers write: what is read is the same when it is written and read again.
// Seeds: JSON/*.json

import Base
import Node

func fuzzJSON(_ input: Span<UInt8>) {
    var bytes: [UInt8] = []
    for index in input.indices { bytes.append(input[index]) }
    guard let value = JSON(parsing: bytes) else { return }
    guard let again = JSON(parsing: value.bytes) else { fatalError("cannot be read again: \(value.text)") }
    guard isAlike(value, again) else { fatalError("\(value.text) is \(again.text) when it is read again") }
}

/// Numbers of more than 17 characters are read by way of a decimal number, which may change the last bits.
private func isAlike(_ one: JSON, _ other: JSON) -> Bool {
    switch (one, other) {
    case (.number(let one), .number(let other)):
        return one == other || abs(one - other) <= max(abs(one), abs(other)) * 1e-9
    case (.array(let one), .array(let other)):
        return one.count == other.count && zip(one, other).allSatisfy { isAlike($0, $1) }
    case (.object(let one), .object(let other)):
        return one.count == other.count
            && one.allSatisfy { name, value in other[name].map { isAlike(value, $0) } ?? false }
    default: return one == other
    }
}
