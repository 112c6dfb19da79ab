import Testing
import Wire

@Suite struct DatagramKinds {
    private func kind(_ bytes: [UInt8]) -> DatagramKind? { DatagramKind(bytes.span) }

    @Test func `follow the first byte`() {
        for first in UInt8.min...UInt8.max {
            let expected: DatagramKind? =
                switch first {
                case 0...3: .stun
                case 20...63: .dtls
                case 128...191: .rtp
                default: nil
                }
            #expect(kind([first, 0]) == expected)
        }
    }

    @Test func `tell RTCP from RTP by the second byte`() {
        for second in UInt8.min...UInt8.max {
            #expect(kind([0x80, second]) == ((192...223).contains(second) ? .rtcp : .rtp))
        }
    }

    @Test func `are none for what is too short`() {
        #expect(kind([]) == nil)
        #expect(kind([0x80]) == nil)
        #expect(kind([0x00]) == .stun)
        #expect(kind([0x16]) == .dtls)
    }
}
