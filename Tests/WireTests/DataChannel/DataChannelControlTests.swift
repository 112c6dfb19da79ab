import TestSupport
import Testing
import Wire

/// Unordered, 3 retransmissions, priority 128, label "chat", protocol "json".
private let open: [UInt8] = [
    0x03, 0x81, 0x00, 0x80, 0x00, 0x00, 0x00, 0x03, 0x00, 0x04, 0x00, 0x04,
    0x63, 0x68, 0x61, 0x74, 0x6A, 0x73, 0x6F, 0x6E,
]

@Suite struct DataChannelControlMessages {
    private func parse(_ bytes: [UInt8]) throws(WireError) -> DataChannelControl {
        try DataChannelControl(parsing: bytes.span)
    }

    private func changed(at index: Int, to byte: UInt8) -> [UInt8] {
        var bytes = open
        bytes[index] = byte
        return bytes
    }

    @Test func `open a channel with all that RFC 8832 names`() throws {
        let expected = DataChannelOpen(
            label: "chat", subprotocol: "json",
            delivery: DataChannelDelivery(isOrdered: false, reliability: .retransmissions(3)), priority: 128)
        #expect(try parse(open) == .open(expected))
        #expect(DataChannelControl.open(expected).bytes == open)
    }

    @Test func `acknowledge with a single byte`() throws {
        #expect(try parse([0x02]) == .acknowledge)
        #expect(DataChannelControl.acknowledge.bytes == [0x02])
    }

    @Test(
        arguments: [
            (0x00, true, .reliable), (0x80, false, .reliable),
            (0x01, true, .retransmissions(3)), (0x81, false, .retransmissions(3)),
            (0x02, true, .lifetime(milliseconds: 3)), (0x82, false, .lifetime(milliseconds: 3)),
        ] as [(UInt8, Bool, DataChannelDelivery.Reliability)])
    func `know the channel types`(
        type: UInt8, isOrdered: Bool, reliability: DataChannelDelivery.Reliability
    ) throws {
        guard case .open(let parsed) = try parse(changed(at: 1, to: type)) else {
            Issue.record("not an open")
            return
        }
        #expect(parsed.delivery == DataChannelDelivery(isOrdered: isOrdered, reliability: reliability))
        let written = DataChannelControl.open(parsed).bytes
        #expect(written[1] == type)
    }

    @Test(arguments: [0x03, 0x7F, 0x83, 0xFF] as [UInt8])
    func `of unassigned channel types are refused`(type: UInt8) {
        #expect(throws: WireError.invalid(.dataChannelType)) { try parse(changed(at: 1, to: type)) }
    }

    @Test(arguments: [0x00, 0x01, 0x04, 0xFF] as [UInt8])
    func `of unknown types are refused`(type: UInt8) {
        #expect(throws: WireError.invalid(.dataChannelMessageType)) { try parse(changed(at: 0, to: type)) }
    }

    @Test(arguments: 0..<open.count) func `are refused when cut short`(length: Int) {
        #expect(throws: WireError.truncated) { try parse(Array(open.prefix(length))) }
    }

    @Test func `with labels or protocols that are no UTF-8 are refused`() {
        #expect(throws: WireError.invalid(.dataChannelLabel)) { try parse(changed(at: 12, to: 0xFF)) }
        #expect(throws: WireError.invalid(.dataChannelProtocol)) { try parse(changed(at: 16, to: 0xFF)) }
    }

    @Test func `may be followed by bytes that mean nothing`() throws {
        #expect(try parse(open + [1, 2, 3]) == parse(open))
    }

    @Test func `cut labels that are too long between characters`() throws {
        let label = String(repeating: "a", count: 65_534) + "é"
        let parsed = try parse(DataChannelControl.open(DataChannelOpen(label: label)).bytes)
        #expect(parsed == .open(DataChannelOpen(label: String(repeating: "a", count: 65_534))))
    }

    @Test func `survive being written and read`() throws {
        var random = SeededGenerator(seed: 8_832)
        for _ in 0..<200 {
            let reliability: DataChannelDelivery.Reliability =
                switch Int.random(in: 0..<3, using: &random) {
                case 0: .reliable
                case 1: .retransmissions(.random(in: 0 ... .max, using: &random))
                default: .lifetime(milliseconds: .random(in: 0 ... .max, using: &random))
                }
            let control = DataChannelControl.open(
                DataChannelOpen(
                    label: String(repeating: "ü", count: .random(in: 0..<40, using: &random)),
                    subprotocol: String(repeating: "p", count: .random(in: 0..<40, using: &random)),
                    delivery: DataChannelDelivery(
                        isOrdered: .random(using: &random), reliability: reliability),
                    priority: .random(in: 0 ... .max, using: &random)))
            #expect(try parse(control.bytes) == control)
        }
    }

    @Test func `made of random bytes never trap`() {
        var random = SeededGenerator(seed: 50)
        var parsed = 0
        for _ in 0..<20_000 {
            var bytes = (0..<Int.random(in: 0..<40, using: &random)).map { _ in
                UInt8.random(in: 0...255, using: &random)
            }
            if bytes.count > 12 {
                bytes[0] = 3
                bytes[1] &= 0x83
                (bytes[8], bytes[10]) = (0, 0)
                (bytes[9], bytes[11]) = (bytes[9] & 15, bytes[11] & 15)
            }
            if (try? parse(bytes)) != nil { parsed += 1 }
        }
        #expect(parsed > 0)
    }
}

@Suite struct DataChannelMessages {
    @Test func `that are empty are sent as one byte under a payload type of their own`() {
        #expect(DataChannelMessage.string([]).encoded == (.emptyString, [0]))
        #expect(DataChannelMessage.binary([]).encoded == (.emptyBinary, [0]))
    }

    @Test func `go under the payload types of RFC 8831`() {
        #expect(DataChannelMessage("hé").encoded == (.string, [0x68, 0xC3, 0xA9]))
        #expect(DataChannelMessage.binary([1, 2]).encoded == (.binary, [1, 2]))
        #expect(DataChannelPayload.string.rawValue == 51)
        #expect(DataChannelPayload.binary.rawValue == 53)
    }

    @Test func `are text only if they are strings of UTF-8`() {
        #expect(DataChannelMessage("hé").text == "hé")
        #expect(DataChannelMessage.string([0xFF]).text == nil)
        #expect(DataChannelMessage.binary([0x68]).text == nil)
    }
}
