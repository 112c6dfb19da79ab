// Fuzz entry of RED: blocks lie within the payload, one behind the other, and survive being written.
// Seeds: RTP/*.red.hex

import Wire

func fuzzRED(_ payload: Span<UInt8>) {
    guard let red = try? RedundantPayload(parsing: payload) else { return }
    let headers = red.earlierCount * RedundantAudio.headerLength + RedundantAudio.lastHeaderLength
    guard red.earlierCount <= RedundantPayload.maximumBlocks, headers <= red.primary.lowerBound,
        red.primary.upperBound == payload.count, red.payloadType < 128
    else { fatalError("a range lies outside") }

    var buffer = [UInt8](repeating: 0, count: headers)
    var span = buffer.mutableSpan
    var position = 0
    var end = headers
    var count = 0
    var cursor = RedundantBlockCursor(red)
    while let block = cursor.next(in: payload) {
        guard block.range.lowerBound == end, block.range.upperBound <= red.primary.lowerBound,
            block.offset <= RedundantAudio.farthestOffset, block.range.count <= RedundantAudio.longestBlock
        else { fatalError("a block lies outside, or is too large") }
        end = block.range.upperBound
        count += 1
        _ = try? OpusPayload.duration(payload.extracting(block.range))
        try? RedundantAudio.writeHeader(
            payloadType: block.payloadType, offset: block.offset, length: block.range.count, into: &span,
            at: &position)
    }
    try? RedundantAudio.writeLastHeader(payloadType: red.payloadType, into: &span, at: &position)
    guard count == red.earlierCount, end == red.primary.lowerBound, position == headers else {
        fatalError("a block is left out")
    }
    for index in 0..<headers where buffer[index] != payload[index] {
        fatalError("headers do not survive being written")
    }
}
