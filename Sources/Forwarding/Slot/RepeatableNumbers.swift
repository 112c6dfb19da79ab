/// How many packets had left before those that may be sent again under their own index, or that the client tells of
/// by it: the transport-wide number is this in 16 bits.
///
/// A packet that is sent again must be the same byte for byte: two different ones under one index are sealed with one
/// nonce. What left too long ago to be known here is not sent again, and what is told of it tells nothing.
/// - Source: RFC 7714 §8.1; RFC 8888 §3.1.
struct RepeatableNumbers {
    /// About a second of pictures, or five of sound.
    static let usualCapacity = 256
    /// A second of 10 Mbit/s, which is as long as what is told may take.
    static let largeCapacity = 1_024

    private struct Entry {
        /// 48-bit packet index.
        var index: Int64
        var number: Int64
    }

    /// At each index's remainder by their count, which is a power of two.
    private var entries: [Entry]

    init(capacity: Int = Self.usualCapacity) {
        entries = Array(repeating: Entry(index: -1, number: 0), count: capacity)
    }

    mutating func note(_ number: Int64, of index: Int64) {
        entries[place(of: index)] = Entry(index: index, number: number)
    }

    /// - Returns: nil for a packet that is not known any more.
    func number(of index: Int64) -> Int64? {
        let entry = entries[place(of: index)]
        return entry.index == index ? entry.number : nil
    }

    private func place(of index: Int64) -> Int {
        Int(truncatingIfNeeded: index & Int64(entries.count - 1))
    }
}
