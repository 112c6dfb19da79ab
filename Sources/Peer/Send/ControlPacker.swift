import Base
import Wire

/// Packs RTCP packets into datagrams that are valid compounds and fit the path.
/// - Source: RFC 3550 §6.1 (compound: a report first, always a CNAME); RFC 5506 §3.4 (reduced size).
package struct ControlPacker: Sendable {
    /// Of plaintext; SRTCP adds up to 20 bytes to it, and the whole stays below 1,200.
    package static let maximumLength = 1_160

    /// What reports come from when there is no sender report.
    private let localSSRC: UInt32
    private let canonicalName: String
    /// Whether the peer takes feedback without reports around it (`a=rtcp-rsize`).
    private let reducedSize: Bool

    package init(localSSRC: UInt32, canonicalName: String, reducedSize: Bool) {
        self.localSSRC = localSSRC
        self.canonicalName = canonicalName
        self.reducedSize = reducedSize
    }

    /// The regular report: one datagram, or several if there is much to say.
    ///
    /// Never none: a receiver report that says nothing still shows that we live.
    package func reports(
        senders: [SenderReport], receptions: [ReportBlock], extended: [ExtendedReport.Block] = []
    ) -> [[UInt8]] {
        var datagrams: [[UInt8]] = []
        var senders = senders[...]
        var receptions = receptions[...]
        var extended = extended
        repeat {
            var bytes: [UInt8] = []
            var sources: [UInt32] = []
            // Half of the room for reception reports, so that sender reports get on too.
            let blocks = Array(receptions.prefix(senders.isEmpty ? 31 : 16))
            receptions = receptions.dropFirst(blocks.count)
            if var first = senders.popFirst() {
                first.reports = blocks
                first.append(to: &bytes)
                sources.append(first.ssrc)
            } else {
                ReceiverReport(ssrc: localSSRC, reports: blocks).append(to: &bytes)
                sources.append(localSSRC)
            }
            if !extended.isEmpty {
                ExtendedReport(ssrc: localSSRC, blocks: extended).append(to: &bytes)
                extended = []
            }
            while sources.count < 31, let next = senders.first,
                bytes.count + 28 + 4 + (sources.count + 1) * chunkLength <= Self.maximumLength
            {
                next.append(to: &bytes)
                sources.append(next.ssrc)
                senders.removeFirst()
            }
            appendDescription(of: sources, to: &bytes)
            datagrams.append(bytes)
        } while !senders.isEmpty || !receptions.isEmpty
        return datagrams
    }

    /// Feedback that leaves at once, in as few datagrams as fit; a packet too large for one is left out.
    package func feedback(_ packets: [RTCPPacket]) -> [[UInt8]] {
        var datagrams: [[UInt8]] = []
        let opening = feedbackOpening()
        var bytes = opening
        for packet in packets {
            let before = bytes.count
            packet.append(to: &bytes)
            guard bytes.count > Self.maximumLength else { continue }
            let length = bytes.count - before
            let last = bytes.suffix(length)
            if before > opening.count { datagrams.append(Array(bytes.prefix(before))) }
            bytes = opening
            if opening.count + length <= Self.maximumLength { bytes.append(contentsOf: last) }
        }
        if bytes.count > opening.count { datagrams.append(bytes) }
        return datagrams
    }

    private func feedbackOpening() -> [UInt8] {
        var bytes: [UInt8] = []
        guard !reducedSize else { return bytes }
        ReceiverReport(ssrc: localSSRC, reports: []).append(to: &bytes)
        appendDescription(of: [localSSRC], to: &bytes)
        return bytes
    }

    private func appendDescription(of sources: [UInt32], to bytes: inout [UInt8]) {
        let chunks = sources.map { SourceDescription.Chunk(ssrc: $0, canonicalName: canonicalName) }
        SourceDescription(chunks: chunks).append(to: &bytes)
    }

    /// SSRC, item header, text and padding of a description's chunk, in bytes; at most.
    private var chunkLength: Int { 4 + 2 + min(canonicalName.utf8.count, 255) + 4 }
}
