/// The transport-wide numbers under which packets left that may be sent again under their own index.
///
/// Such a packet must be the same byte for byte: two different ones under one index are sealed with one nonce. What
/// left too long ago to be known here is not sent again.
/// - Source: RFC 7714 §8.1.
struct RepeatableNumbers {
    /// About a second of pictures, or five of sound.
    private static let capacity = 256

    private struct Entry {
        /// 48-bit packet index.
        var index: Int64
        var number: UInt16
    }

    /// At each index's remainder.
    private var entries = Array(repeating: Entry(index: -1, number: 0), count: Self.capacity)

    mutating func note(_ number: UInt16, of index: Int64) {
        entries[Self.place(of: index)] = Entry(index: index, number: number)
    }

    /// - Returns: nil for a packet that is not known any more.
    func number(of index: Int64) -> UInt16? {
        let entry = entries[Self.place(of: index)]
        return entry.index == index ? entry.number : nil
    }

    private static func place(of index: Int64) -> Int {
        Int(truncatingIfNeeded: index & Int64(capacity - 1))
    }
}
