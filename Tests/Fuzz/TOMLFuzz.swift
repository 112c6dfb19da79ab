// Fuzz entry of the configuration file: what is read has bare keys that differ, and is the same when it is written and
// read again.
// Seeds: Configuration/*.toml

import Base

func fuzzTOML(_ input: Span<UInt8>) {
    var bytes: [UInt8] = []
    for index in input.indices { bytes.append(input[index]) }
    let text = String(decoding: bytes, as: UTF8.self)
    let lines = text.utf8.count { $0 == UInt8(ascii: "\n") } + 1
    let table: TOMLTable
    do throws(TOMLTable.Failure) {
        table = try TOMLTable(parsing: text)
    } catch {
        guard (1...lines).contains(error.line) else { fatalError("\(error) in \(lines) lines") }
        return
    }
    guard Set(table.entries.map(\.key)).count == table.entries.count else { fatalError("a key stands twice") }
    var written = ""
    for entry in table.entries {
        guard (1...lines).contains(entry.line), TOMLTable.isBareKey(entry.key) else { fatalError("\(entry)") }
        written += "\(entry.key) = \(entry.value.text)\n"
    }
    guard let again = try? TOMLTable(parsing: written),
        again.entries.elementsEqual(table.entries, by: { $0.key == $1.key && $0.value == $1.value })
    else { fatalError("what was read is something else when it is written: \(written)") }
}
