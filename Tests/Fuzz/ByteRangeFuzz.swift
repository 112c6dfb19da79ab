// Fuzz entry of `Range`: a range lies within the file, whatever the file's size, and is the same when it is written and
// read again.
// Seeds: Headers/*ranges.txt

import Gateway

func fuzzByteRange(_ input: Span<UInt8>) {
    var bytes: [UInt8] = []
    for index in input.indices { bytes.append(input[index]) }
    for line in bytes.split(separator: 0x0A).prefix(64) {
        let text = String(decoding: line, as: UTF8.self)
        guard let wanted = ByteRange(text) else { continue }
        guard ByteRange(written(wanted)) == wanted else { fatalError("\(text) is not \(written(wanted))") }
        for size in [0, 1, 2, 1_000, 1 << 40, .max] {
            guard let range = wanted.range(of: size) else { continue }
            guard !range.isEmpty, range.lowerBound >= 0, range.upperBound <= size else {
                fatalError("\(range) of \(size) bytes")
            }
            switch wanted {
            case .from(let first, let last):
                guard range.lowerBound == first, range.upperBound == size || range.upperBound - 1 == last
                else { fatalError("\(text) is \(range) of \(size)") }
            case .last(let count):
                guard range.upperBound == size, range.count <= count else {
                    fatalError("\(text) is \(range) of \(size)")
                }
            }
        }
    }
}

private func written(_ range: ByteRange) -> String {
    switch range {
    case .from(let first, nil): "bytes=\(first)-"
    case .from(let first, let last?): "bytes=\(first)-\(last)"
    case .last(let count): "bytes=-\(count)"
    }
}
