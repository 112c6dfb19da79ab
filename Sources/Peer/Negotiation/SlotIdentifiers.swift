import Base
import Wire

/// The identifiers of our slots: SSRCs, the CNAME and msids, all drawn at random.
struct SlotIdentifiers {
    struct Slot {
        var ssrc: UInt32
        var repairSSRC: UInt32?
        var cname: String
        var msid: MediaStreamIdentifier
    }

    /// By the index of the m-line in the offer.
    private var slots: [Int: Slot] = [:]

    /// Draws identifiers for every m-line that receives.
    ///
    /// In `.play`, `.feed` and `.audience` the n-th audio and the n-th video m-line form one MediaStream, because
    /// browsers play the tracks of a MediaStream in lip sync. In `.stage` each slot has its own: its audio and
    /// video slots carry different participants.
    init(
        for lines: [NegotiatedLine?], of offer: SessionOffer, using random: inout some RandomNumberGenerator
    ) {
        var used = Set(offer.media.flatMap(\.announced).flatMap { [$0.ssrc, $0.repairSSRC ?? 0] })
        used.insert(0)
        let cname = String.random(length: 16, using: &random)
        var streams: [String] = []
        var counts: [MediaKind: Int] = [:]
        for case let line? in lines where line.receives {
            let place = offer.purpose.isPlaying ? counts[line.kind, default: 0] : streams.count
            counts[line.kind, default: 0] += 1
            if place == streams.count { streams.append(.random(length: 16, using: &random)) }
            let hasRepair = line.formats.contains { $0.format.repairPayloadType != nil }
            slots[line.offered.index] = Slot(
                ssrc: Self.ssrc(&used, using: &random),
                repairSSRC: hasRepair ? Self.ssrc(&used, using: &random) : nil,
                cname: cname,
                msid: MediaStreamIdentifier(
                    stream: streams[place], track: .random(length: 16, using: &random)))
        }
    }

    func slot(of line: NegotiatedLine) -> Slot? { slots[line.offered.index] }

    private static func ssrc(_ used: inout Set<UInt32>, using random: inout some RandomNumberGenerator)
        -> UInt32
    {
        var ssrc = UInt32(truncatingIfNeeded: random.next() >> 32)
        // A repeating generator must not cause an endless loop: after a clash, count upwards.
        while !used.insert(ssrc).inserted { ssrc &+= 1 }
        return ssrc
    }
}
