// Fuzz entry of EBML: elements lie in the file, one behind the other, and each is the same when it is read by itself.
// Seeds: Recordings/*.hex

import Wire

func fuzzEBML(_ input: Span<UInt8>) {
    guard let file = try? input.bytes(0..<input.count) else { return }
    let source = ByteSource(file)
    check(source, from: 0, to: source.size, depth: 5)
    // A segment of unknown size, as it is written live.
    guard let header = source.element(at: 0), let place = header.end, let segment = source.element(at: place)
    else { return }
    check(source, from: segment.dataStart, to: source.size, depth: 4)
}

private func check(_ source: ByteSource, from start: Int64, to end: Int64, depth: Int) {
    var place = start
    for element in EBMLElements(in: source, from: start, to: end) {
        guard element.dataStart > place, element.dataStart - place <= EBMLElement.longestHeader,
            let next = element.end, (element.dataStart...end).contains(next)
        else { fatalError("\(element) is not within \(place) to \(end)") }
        let bytes = source.bytes(at: place, count: Int(next - place))
        guard let alone = try? EBMLElement(parsing: bytes.span, at: place), alone == element else {
            fatalError("\(element) is something else by itself")
        }
        let data = Array(bytes.dropFirst(Int(element.dataStart - place)))
        if let block = try? MatroskaBlock(parsing: data.span),
            block.headerLength > min(data.count, MatroskaBlock.longestHeader)
        {
            fatalError("\(block) begins behind its \(data.count) bytes")
        }
        if depth > 0 { check(source, from: element.dataStart, to: next, depth: depth - 1) }
        place = next
    }
}
