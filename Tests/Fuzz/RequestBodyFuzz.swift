// Fuzz entry of requests' bodies: a body that is written and read again asks for the same changes, and a time in it is
// the same when it is written and read again.
// Seeds: Bodies/*.json

import Base
import Gateway
import HTTP
import Node
import Stage

func fuzzRequestBody(_ input: Span<UInt8>) {
    var bytes: [UInt8] = []
    for index in input.indices { bytes.append(input[index]) }
    guard let body = jsonBody(bytes) else { return }
    guard let value = JSON(parsing: bytes), let again = jsonBody(value.bytes) else {
        fatalError("no object when it is written and read again")
    }
    guard isPlain(value) else { return }
    let edit = try? body.edit()
    guard edit == (try? again.edit()) else { fatalError("another edit: \(value.text)") }
    guard (try? body.deliveryPatch()) == (try? again.deliveryPatch()) else {
        fatalError("other preferences: \(value.text)")
    }
    guard (try? body.placementEdit()) == (try? again.placementEdit()) else {
        fatalError("another placement: \(value.text)")
    }
    if let edit, case .set(let time) = edit.startsAt { check(time) }
}

/// Whether no number may change its last bits on the way; see the entry JSON.
private func isPlain(_ value: JSON) -> Bool {
    switch value {
    case .number(let number): number == number.rounded() && abs(number) < 1e15
    case .array(let values): values.allSatisfy(isPlain)
    case .object(let members): members.values.allSatisfy(isPlain)
    case .null, .bool, .string: true
    }
}

/// For years in which all calendars agree and that have four digits.
private func check(_ time: WallTime) {
    guard (0..<253_402_300_800_000).contains(time.milliseconds) else { return }
    let written = JSON.object(["startsAt": .time(time)]).bytes
    guard (try? jsonBody(written)?.edit())?.startsAt == .set(time) else {
        fatalError("\(time.text) is another time when it is read again")
    }
}

/// Nil for what is no JSON object.
private func jsonBody(_ bytes: [UInt8]) -> JSONBody? {
    let request = HTTPRequest(
        method: .patch, path: "/", headers: ["Content-Type": "application/json"], body: bytes)
    return try? JSONBody(request) { _ in }
}
