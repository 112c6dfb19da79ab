import TestSupport
import Testing
import Wire

@Suite struct EBMLElementTests {
    /// RFC 8794 §4.4: the same number in more and more octets.
    @Test(arguments: [[0x82], [0x40, 0x02], [0x20, 0, 0x02], [0x10, 0, 0, 0x02]] as [[UInt8]])
    func `reads a variable-size integer of any width`(bytes: [UInt8]) throws {
        let integer = try EBMLVariableInteger(parsing: bytes.span)
        #expect(integer.value == 2)
        #expect(integer.width == bytes.count)
        #expect(integer.marked == bytes.reduce(0) { $0 << 8 | UInt64($1) })
        for length in 0..<bytes.count {
            #expect(throws: WireError.truncated) {
                try EBMLVariableInteger(parsing: Array(bytes.prefix(length)).span)
            }
        }
    }

    @Test func `refuses an integer of more than eight octets`() {
        #expect(throws: WireError.invalid(.ebmlVariableInteger)) {
            try EBMLVariableInteger(parsing: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9].span)
        }
    }

    @Test func `says where its data lies`() throws {
        let header: [UInt8] = [0x1A, 0x45, 0xDF, 0xA3, 0x40, 0x10]
        let element = try EBMLElement(parsing: header.span, at: 100)
        #expect(element.id == MatroskaID.ebml)
        #expect(element.dataStart == 106 && element.end == 122)
        for length in 0..<header.count {
            #expect(throws: WireError.truncated) {
                try EBMLElement(parsing: Array(header.prefix(length)).span)
            }
        }
    }

    @Test(arguments: [[0xFF], [0x7F, 0xFF], [0x01, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF]] as [[UInt8]])
    func `may have an unknown size`(size: [UInt8]) throws {
        let element = try EBMLElement(parsing: ([0x18, 0x53, 0x80, 0x67] + size).span)
        #expect(element.id == MatroskaID.segment)
        #expect(element.dataStart == 4 + Int64(size.count) && element.end == nil)
    }

    @Test func `has an ID of at most four octets, and an end that can be said`() {
        #expect(throws: WireError.invalid(.ebmlElementID)) {
            try EBMLElement(parsing: [0x08, 1, 2, 3, 4, 0x81].span)
        }
        #expect(throws: WireError.invalid(.ebmlDataSize)) {
            try EBMLElement(parsing: [0xEC, 0x81].span, at: .max - 2)
        }
    }

    @Test func `follows one another as far as they are whole`() {
        let file: [UInt8] = [0xEC, 0x81, 0, 0xE7, 0x82, 1, 2, 0xA3, 0x84, 1]
        let source = ByteSource(file)
        #expect(EBMLElements(in: source, from: 0, to: source.size).map(\.id) == [0xEC, 0xE7])
        #expect(EBMLElements(in: source, from: 3, to: 7).map(\.end) == [7])
        #expect(Array(EBMLElements(in: source, from: 3, to: 6)).isEmpty)
        #expect(Array(EBMLElements(in: source, from: -1, to: 7)).isEmpty)
        #expect(Array(EBMLElements(in: source, from: 20, to: 30)).isEmpty)
    }

    @Test func `holds an unsigned integer`() {
        #expect(EBMLElement.unsignedInteger([]) == 0)
        #expect(EBMLElement.unsignedInteger([0x03, 0xE8]) == 1_000)
        #expect(EBMLElement.unsignedInteger([UInt8](repeating: 0xFF, count: 9)) == .max)
    }
}

@Suite struct MatroskaBlockTests {
    @Test func `tells its track, its time and where the frame begins`() throws {
        let header: [UInt8] = [0x40, 0x02, 0xFF, 0xFE, 0x80]
        let block = try MatroskaBlock(parsing: (header + [1, 2, 3]).span)
        #expect(block.trackNumber == 2 && block.timestamp == -2 && !block.isLaced)
        #expect(block.headerLength == header.count)
        for length in 0..<header.count {
            #expect(throws: WireError.truncated) {
                try MatroskaBlock(parsing: Array(header.prefix(length)).span)
            }
        }
    }

    @Test(arguments: [0x02, 0x04, 0x06] as [UInt8]) func `may be laced`(flags: UInt8) throws {
        #expect(try MatroskaBlock(parsing: [0x81, 0, 0, flags].span).isLaced)
    }
}
