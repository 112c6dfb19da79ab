// Fuzz entry of RTP: ranges lie inside the packet, and what is read of a header survives being written.
// Seeds: RTP/*.rtp.hex

import Wire

func fuzzRTP(_ packet: Span<UInt8>) {
    let length = try? RTPHeader.length(of: packet)
    guard let header = try? RTPHeader(parsing: packet) else { return }
    guard header.payloadRange.lowerBound == length,
        header.payloadRange.upperBound + header.paddingLength == packet.count,
        header.extensionRange.upperBound <= header.payloadRange.lowerBound
    else { fatalError("a range lies outside") }
    readValues(header, packet)

    var buffer = [UInt8](repeating: 0, count: packet.count + 512)
    var span = buffer.mutableSpan
    guard let (end, count) = try? rewrite(header, packet, into: &span) else { return }
    guard let again = try? RTPHeader(parsing: buffer.span.extracting(first: end)),
        again.sequenceNumber == header.sequenceNumber, again.timestamp == header.timestamp,
        again.ssrc == header.ssrc, again.marker == header.marker, again.payloadType == header.payloadType,
        again.payloadRange == end..<end
    else { fatalError("a header does not survive being written") }
    var cursor = RTPExtensionCursor(again)
    var found = 0
    while cursor.next(in: buffer.span) != nil { found += 1 }
    guard found == count else { fatalError("an element does not survive being written") }
}

/// - Returns: the length of the header and the number of its elements.
private func rewrite(
    _ header: RTPHeader, _ packet: Span<UInt8>, into span: inout MutableSpan<UInt8>
) throws(WireError) -> (Int, Int) {
    var writer = try RTPHeaderWriter(
        marker: header.marker, payloadType: header.payloadType, sequenceNumber: header.sequenceNumber,
        timestamp: header.timestamp, ssrc: header.ssrc, into: &span)
    var cursor = RTPExtensionCursor(header)
    var count = 0
    while let element = cursor.next(in: packet) {
        guard header.extensionRange.contains(element.range.lowerBound - 1),
            element.range.upperBound <= header.extensionRange.upperBound
        else { fatalError("an element lies outside") }
        try writer.append(id: element.id, copying: packet, element.range, into: &span)
        count += 1
    }
    return (try writer.finish(into: &span), count)
}

private func readValues(_ header: RTPHeader, _ packet: Span<UInt8>) {
    for id in 1...15 as ClosedRange<UInt8> {
        _ = header.extensionValue(VideoOrientation.self, id: id, in: packet)
        _ = header.extensionValue(TransportSequenceNumber.self, id: id, in: packet)
        _ = header.extensionValue(PlayoutDelay.self, id: id, in: packet)
    }
    if let original = try? Retransmission.original(of: header, in: packet, payloadType: 96, ssrc: 1) {
        guard original.payloadRange.upperBound <= packet.count else { fatalError("a range lies outside") }
    }
}
