// Fuzz entry of times in header fields: a time that is read is the same when it is written and read again.
// Seeds: Headers/*dates.txt

import HTTP

func fuzzHTTPDate(_ input: Span<UInt8>) {
    var bytes: [UInt8] = []
    for index in input.indices { bytes.append(input[index]) }
    for line in bytes.split(separator: 0x0A).prefix(64) {
        let text = String(decoding: line, as: UTF8.self)
        guard let seconds = HTTPDate.seconds(text) else { continue }
        // A leap second at the end of the last year that has four digits belongs to the next year.
        guard (0...yearTenThousand).contains(seconds) else { fatalError("\(text) is \(seconds)") }
        guard seconds < yearTenThousand else { continue }
        let written = HTTPDate.text(Int(seconds))
        guard HTTPDate.seconds(written) == seconds else { fatalError("\(text) is not \(written)") }
    }
}

/// In seconds since 1970.
private let yearTenThousand: Int64 = 253_402_300_800
