/// Remembers a number for each recently sent packet: the count of packets sent on the whole path before it.
///
/// It serves packets that may be sent again under their own index, and clients that send feedback by sequence number.
/// The transport-wide sequence number is the low 16 bits of this count. A packet that is sent again must be
/// identical: two different ones under one index would be encrypted with one nonce. A packet that is no longer
/// remembered is not sent again, and feedback on it is ignored.
/// - Source: RFC 7714 §8.1; RFC 8888 §3.1.
struct RepeatableNumbers {
    /// About a second of video, or five seconds of audio.
    static let usualCapacity = 256
    /// A second at 10 Mbit/s, which is how old feedback may be.
    static let largeCapacity = 1_024
    /// More than a second of audio: what is sent again later comes too late.
    static let soundCapacity = 64

    private struct Entry {
        /// 48-bit packet index.
        var index: Int64
        /// Packets sent on the whole path before it.
        var number: Int64
    }

    /// A ring by index; its size is a power of two.
    private var entries: [Entry]

    init(capacity: Int = Self.usualCapacity) {
        // No packet has this index; -1 is what feedback on a number before the first packet would ask for.
        entries = Array(repeating: Entry(index: .min, number: 0), count: capacity)
    }

    mutating func note(_ number: Int64, of index: Int64) {
        entries[place(of: index)] = Entry(index: index, number: number)
    }

    /// - Returns: nil for a packet that is no longer remembered.
    func number(of index: Int64) -> Int64? {
        let entry = entries[place(of: index)]
        return entry.index == index ? entry.number : nil
    }

    /// The remembered packets that were sent under these numbers, in their order.
    func indices(of numbers: Set<Int64>) -> [Int64] {
        // Nearly all entries are older than any of the numbers, and comparing costs less than hashing.
        guard let low = numbers.min() else { return [] }
        return entries.filter { $0.number >= low && $0.index != .min && numbers.contains($0.number) }
            .map(\.index).sorted()
    }

    private func place(of index: Int64) -> Int {
        Int(truncatingIfNeeded: index & Int64(entries.count - 1))
    }
}
