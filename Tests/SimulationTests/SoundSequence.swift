/// In which order packets of sound came, and which did not, by their sequence numbers.
struct SoundSequence {
    /// The highest number so far, extended.
    private(set) var last: Int64?
    /// How often one or several were missing when a later one came.
    private(set) var gaps = 0
    /// Packets that came after a later one, although nobody had been told that they were missing.
    private(set) var reversals = 0
    /// The highest number when the latest report on packets was sent.
    private var told: Int64 = .min

    mutating func note(_ sequenceNumber: Int64) {
        if let last, sequenceNumber > last + 1 { gaps += 1 }
        if let last, sequenceNumber < last, sequenceNumber > told { reversals += 1 }
        last = max(last ?? .min, sequenceNumber)
    }

    /// Notes that a report tells which packets came until now.
    mutating func noteReport() { told = last ?? told }
}
