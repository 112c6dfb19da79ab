/// Whether a viewer sees again what it saw before, by the numbers that publishers give their pictures.
struct PictureOrder {
    /// Of the packet with the highest sequence number so far, extended.
    private var last: (sequenceNumber: Int64, picture: UInt32)?
    /// By how many pictures what was sent next was behind what was sent before, each time that it was.
    private(set) var leaps: [Int] = []

    mutating func note(_ sequenceNumber: Int64, picture: UInt32) {
        if let last {
            guard sequenceNumber > last.sequenceNumber else { return }
            if picture < last.picture { leaps.append(Int(last.picture - picture)) }
        }
        last = (sequenceNumber, picture)
    }
}
