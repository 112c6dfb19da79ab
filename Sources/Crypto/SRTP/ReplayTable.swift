/// The replay windows of the sources that one peer sends.
///
/// It holds at most `limit` sources. A further one replaces the source that has been silent for the longest time,
/// counted in packets. Only the peer itself can cause that, because only authentic packets are accepted.
struct ReplayTable {
    static let limit = 64

    /// A source and the value of `clock` at its latest packet.
    private struct Source {
        var ssrc: UInt32
        var lastUse: UInt64
        var window = ReplayWindow()
    }

    private var sources: [Source] = []
    /// Index of the latest packet's source, checked first, because several packets in a row often have the same
    /// source.
    private var recent = 0
    /// Counts accepted packets.
    private var clock: UInt64 = 0

    var count: Int {
        sources.count
    }

    /// The packet index that `sequenceNumber` most likely stands for.
    mutating func index(of sequenceNumber: UInt16, ssrc: UInt32) -> UInt64 {
        guard let place = find(ssrc) else { return UInt64(sequenceNumber) }
        return sources[place].window.index(of: sequenceNumber)
    }

    /// Whether a packet may still be accepted; always for an unknown source.
    mutating func admits(_ index: UInt64, ssrc: UInt32) -> Bool {
        guard let place = find(ssrc) else { return true }
        return sources[place].window.admits(index)
    }

    /// Records an authentic packet.
    /// - Returns: the SSRC of the source that it replaced; nil if it replaced none.
    mutating func accept(_ index: UInt64, ssrc: UInt32) -> UInt32? {
        clock &+= 1
        var forgotten: UInt32?
        let place: Int
        if let known = find(ssrc) {
            place = known
        } else if sources.count < Self.limit {
            place = sources.count
            sources.append(Source(ssrc: ssrc, lastUse: clock))
        } else {
            place = sources.indices.min { sources[$0].lastUse < sources[$1].lastUse } ?? 0
            forgotten = sources[place].ssrc
            sources[place] = Source(ssrc: ssrc, lastUse: clock)
        }
        sources[place].lastUse = clock
        sources[place].window.accept(index)
        recent = place
        return forgotten
    }

    /// The index of a source; nil if it is unknown.
    private mutating func find(_ ssrc: UInt32) -> Int? {
        if recent < sources.count, sources[recent].ssrc == ssrc { return recent }
        guard let place = sources.firstIndex(where: { $0.ssrc == ssrc }) else { return nil }
        recent = place
        return place
    }
}
