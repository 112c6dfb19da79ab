/// In which order packets of sound came, and which did not, by their sequence numbers.
struct SoundSequence {
    /// The highest number so far, extended.
    private(set) var last: Int64?
    /// How often one or several were missing when a later one came.
    private(set) var gaps = 0
    /// Packets that came after a later one.
    private(set) var reversals = 0

    mutating func note(_ sequenceNumber: Int64) {
        if let last, sequenceNumber > last + 1 { gaps += 1 }
        if let last, sequenceNumber < last { reversals += 1 }
        last = max(last ?? .min, sequenceNumber)
    }
}
