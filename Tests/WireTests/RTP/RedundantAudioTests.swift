import Testing
import Wire

@Suite struct RedundantAudioTests {
    /// By hand, from the figure in RFC 2198 §3: F, 7 bits of type, 14 of offset, 10 of length; then F and the type.
    @Test func `headers stand as the RFC has them`() throws {
        var bytes = [UInt8](repeating: 0, count: 9)
        var position = 0
        var span = bytes.mutableSpan
        try RedundantAudio.writeHeader(
            payloadType: 111, offset: 1_920, length: 80, into: &span, at: &position)
        try RedundantAudio.writeHeader(
            payloadType: 111, offset: 16_383, length: 1_023, into: &span, at: &position)
        try RedundantAudio.writeLastHeader(payloadType: 111, into: &span, at: &position)
        #expect(position == 9)
        #expect(bytes == [0xEF, 0x1E, 0x00, 0x50, 0xEF, 0xFF, 0xFF, 0xFF, 0x6F])
    }

    @Test func `what does not fit is said`() {
        var bytes = [UInt8](repeating: 0, count: 3)
        var position = 0
        var span = bytes.mutableSpan
        #expect(throws: WireError.noRoom) {
            try RedundantAudio.writeHeader(payloadType: 1, offset: 1, length: 1, into: &span, at: &position)
        }
        position = 3
        #expect(throws: WireError.noRoom) {
            try RedundantAudio.writeLastHeader(payloadType: 1, into: &span, at: &position)
        }
    }

    @Test func `blocks have their limits`() {
        #expect(RedundantAudio.canCarry(length: 1_023, offset: 16_383))
        for (length, offset) in [(0, 960), (1_024, 960), (80, 0), (80, 16_384), (-1, 1)] as [(Int, UInt32)] {
            #expect(!RedundantAudio.canCarry(length: length, offset: offset))
        }
    }
}
