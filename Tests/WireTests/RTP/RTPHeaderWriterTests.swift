import Testing
import TestSupport
import Wire

/// One element to write.
private struct Element: Equatable {
    var id: UInt8
    var value: [UInt8]
}

/// Writes a header with these elements into `capacity` bytes; returns the header's bytes.
private func write(_ elements: [Element], capacity: Int = 1_500) throws -> [UInt8] {
    var packet = [UInt8](repeating: 0xEE, count: capacity)
    var span = packet.mutableSpan
    var writer = try RTPHeaderWriter(
        marker: true, payloadType: 111, sequenceNumber: 7, timestamp: 8, ssrc: 9, into: &span)
    for element in elements {
        try writer.append(
            id: element.id, copying: element.value.span, 0..<element.value.count, into: &span)
    }
    let length = try writer.finish(into: &span)
    return Array(packet.prefix(length))
}

private func read(_ packet: [UInt8]) throws -> [Element] {
    var cursor = try RTPExtensionCursor(RTPHeader(parsing: packet.span))
    var found: [Element] = []
    while let element = cursor.next(in: packet.span) {
        found.append(Element(id: element.id, value: Array(packet[element.range])))
    }
    return found
}

@Suite struct RTPHeaderWriting {
    @Test func `without elements leaves no extension`() throws {
        let packet = try write([])
        #expect(packet == [0x80, 0xEF, 0, 7, 0, 0, 0, 8, 0, 0, 0, 9])
    }

    @Test func `announces padding with and without an extension`() throws {
        for hasExtension in [false, true] {
            var packet = [UInt8](repeating: 0, count: 40)
            var span = packet.mutableSpan
            var writer = try RTPHeaderWriter(
                marker: false, hasPadding: true, payloadType: 96, sequenceNumber: 7, timestamp: 8, ssrc: 9,
                into: &span)
            if hasExtension { try writer.append(id: 3, 1, length: 2, into: &span) }
            let length = try writer.finish(into: &span)
            try span.store(UInt8(4), at: length + 13)
            let header = try RTPHeader(parsing: packet.span.extracting(0..<(length + 14)))
            #expect(header.paddingLength == 4)
            #expect(header.payloadRange == length..<(length + 10))
        }
    }

    @Test func `uses the one-byte form while it can`() throws {
        let packet = try write([Element(id: 1, value: [0xA1]), Element(id: 14, value: [0xB1, 0xB2])])
        #expect(packet[0] == 0x90)
        #expect(Array(packet[12...]) == [0xBE, 0xDE, 0, 2, 0x10, 0xA1, 0xE1, 0xB1, 0xB2, 0, 0, 0])
    }

    @Test(arguments: [
        Element(id: 15, value: [0xC1]), Element(id: 3, value: []),
        Element(id: 3, value: [UInt8](repeating: 7, count: 17)),
    ]) private func `changes over to the two-byte form when an element needs it`(last: Element) throws {
        let elements = [
            Element(id: 1, value: [0xA1]), Element(id: 14, value: [UInt8](1...16)),
            Element(id: 2, value: [0xB1, 0xB2]), last,
        ]
        let packet = try write(elements)
        #expect(packet[12...13] == [0x10, 0x00])
        #expect(try read(packet) == elements)
    }

    @Test func `writes integers of one to eight bytes`() throws {
        var packet = [UInt8](repeating: 0, count: 64)
        var span = packet.mutableSpan
        var writer = try RTPHeaderWriter(
            marker: false, payloadType: 96, sequenceNumber: 0, timestamp: 0, ssrc: 0, into: &span)
        try writer.append(id: 1, 0x0102_0304_0506_0708, length: 8, into: &span)
        try writer.append(id: 2, 0xABCDEF, length: 2, into: &span)
        try writer.append(id: 3, PlayoutDelay(minimum: 1, maximum: 2), into: &span)
        #expect(throws: WireError.invalid(.rtpExtensionLength)) {
            try writer.append(id: 4, 0, length: 9, into: &span)
        }
        #expect(throws: WireError.invalid(.rtpExtensionID)) {
            try writer.append(id: 0, 0, length: 1, into: &span)
        }
        let length = try writer.finish(into: &span)
        #expect(
            try read(Array(packet.prefix(length))) == [
                Element(id: 1, value: [1, 2, 3, 4, 5, 6, 7, 8]), Element(id: 2, value: [0xCD, 0xEF]),
                Element(id: 3, value: [0x00, 0x10, 0x02]),
            ])
    }

    @Test func `fails in every buffer that is too small`() throws {
        let elements = [
            Element(id: 1, value: [1, 2, 3]), Element(id: 2, value: [4]), Element(id: 20, value: [5]),
        ]
        let length = try write(elements).count
        for capacity in 0..<length {
            #expect(throws: WireError.noRoom) { try write(elements, capacity: capacity) }
        }
        #expect(try write(elements, capacity: length).count == length)
    }

    @Test func `is read back by the parser whatever the elements`() throws {
        var random = SeededGenerator(seed: 2)
        for _ in 0..<2_000 {
            let elements = (0..<Int.random(in: 0..<8, using: &random)).map { _ in
                let isBig = Int.random(in: 0..<8, using: &random) == 0
                return Element(
                    id: .random(in: 1...(isBig ? 255 : 14), using: &random),
                    value: (0..<Int.random(in: (isBig ? 0 : 1)...(isBig ? 90 : 16), using: &random)).map {
                        _ in
                        .random(in: 0...255, using: &random)
                    })
            }
            let packet = try write(elements)
            #expect(packet.count.isMultiple(of: 4))
            #expect(try read(packet) == elements)
        }
    }
}
