import Testing
import TestSupport
import Wire

@Suite struct RTCPCaptures {
    static let names = [
        "chromium-vp8-l1t3", "chromium-vp8-simulcast", "chromium-vp9-l1t1", "chromium-vp9-l2t2",
        "chromium-h264",
        "chromium-av1-l1t1", "chromium-av1-l2t2", "firefox-vp8-simulcast", "firefox-vp9-l1t1",
        "firefox-av1-l1t1",
    ]

    private func compounds(_ name: String) throws -> [[RTCPPacket]] {
        try PacketCapture("RTP/\(name).rtcp.hex").packets.map { try RTCPPacket.parseCompound($0.span) }
    }

    @Test(arguments: names) func `of browsers are understood in full`(name: String) throws {
        for packets in try compounds(name) {
            #expect(!packets.isEmpty)
            for packet in packets {
                if case .unknown(let unknown) = packet { Issue.record("\(name): \(unknown)") }
            }
        }
    }

    @Test(arguments: names) func `come back as they were when written again`(name: String) throws {
        for packets in try compounds(name) {
            var bytes: [UInt8] = []
            for packet in packets { packet.append(to: &bytes) }
            #expect(try RTCPPacket.parseCompound(bytes.span) == packets)
        }
    }

    @Test(arguments: names) func `report on what was sent to them`(name: String) throws {
        let packets = try Array(compounds(name).joined())
        let reports = packets.flatMap { packet -> [ReportBlock] in
            switch packet {
            case .senderReport(let report): report.reports
            case .receiverReport(let report): report.reports
            default: []
            }
        }
        // The recorder echoes under this SSRC and leaves out every seventh packet.
        #expect(reports.contains { $0.ssrc == 0x0EC4_0001 && $0.fractionLost > 0 })
        #expect(packets.contains { if case .nack = $0 { true } else { false } })
    }

    @Test(arguments: names) func `tell arrival times in order`(name: String) throws {
        var last: Int64?
        var count: UInt8?
        for case .transportFeedback(let feedback) in try compounds(name).joined() {
            if let count { #expect(feedback.feedbackCount == count &+ 1) }
            count = feedback.feedbackCount
            let missing = feedback.statusCount - feedback.arrivals.count
            #expect(missing >= 0)
            for arrival in feedback.arrivals {
                // Half a second of reordering is the most that a loopback may need.
                if let last { #expect(arrival.ticks > last - 2_000 && arrival.ticks < last + 20_000) }
                last = arrival.ticks
            }
        }
        #expect(last != nil)
    }
}
