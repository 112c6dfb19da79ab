import Base
import Wire

/// Packs RTCP packets into datagrams that are valid compound packets and fit the path.
/// - Source: RFC 3550 §6.1 (compound: a report first, always a CNAME); RFC 5506 §3.4 (reduced size).
package struct ControlPacker: Sendable {
    /// Bytes of plaintext; SRTCP adds up to 20, and the total stays below 1,200.
    package static let maximumLength = 1_160

    /// The sender of reports where there is no sender report.
    private let localSSRC: UInt32
    private let canonicalName: String
    /// Whether the peer accepts feedback without reports around it (`a=rtcp-rsize`).
    private let reducedSize: Bool

    /// - Parameter reducedSize: whether `a=rtcp-rsize` was negotiated.
    package init(localSSRC: UInt32, canonicalName: String, reducedSize: Bool) {
        self.localSSRC = localSSRC
        self.canonicalName = canonicalName
        self.reducedSize = reducedSize
    }

    /// Builds the regular report: one datagram, or several if it does not fit.
    ///
    /// Never empty: a receiver report without blocks still shows that the server is alive.
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
            // Half of the room at most for reception reports, so that sender reports fit as well.
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

    /// Packs feedback that leaves immediately into as few datagrams as possible; a packet too large for one is
    /// dropped.
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

    /// What each feedback datagram begins with: a report and a CNAME, or nothing with reduced size.
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

    /// Upper bound in bytes for one chunk of the source description: SSRC, item header, text, padding.
    private var chunkLength: Int { 4 + 2 + min(canonicalName.utf8.count, 255) + 4 }
}
