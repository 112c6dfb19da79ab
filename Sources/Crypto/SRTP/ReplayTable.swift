/// The replay windows of the sources a peer sends.
///
/// Holds at most `limit` sources. When another one comes, that which has been silent for the longest (counted in
/// packets) is forgotten: only the peer itself can make sources, since only authentic packets do.
struct ReplayTable {
    static let limit = 64

    private struct Source {
        var ssrc: UInt32
        var lastUse: UInt64
        var window = ReplayWindow()
    }

    private var sources: [Source] = []
    /// Where the last packet's source stands: packets come in runs.
    private var recent = 0
    private var clock: UInt64 = 0

    var count: Int {
        sources.count
    }

    /// The packet index that `sequenceNumber` most likely stands for.
    mutating func index(of sequenceNumber: UInt16, ssrc: UInt32) -> UInt64 {
        guard let place = find(ssrc) else { return UInt64(sequenceNumber) }
        return sources[place].window.index(of: sequenceNumber)
    }

    mutating func admits(_ index: UInt64, ssrc: UInt32) -> Bool {
        guard let place = find(ssrc) else { return true }
        return sources[place].window.admits(index)
    }

    /// Notes an authentic packet.
    /// - Returns: the SSRC that had to be forgotten for it, if any.
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

    private mutating func find(_ ssrc: UInt32) -> Int? {
        if recent < sources.count, sources[recent].ssrc == ssrc { return recent }
        guard let place = sources.firstIndex(where: { $0.ssrc == ssrc }) else { return nil }
        recent = place
        return place
    }
}
