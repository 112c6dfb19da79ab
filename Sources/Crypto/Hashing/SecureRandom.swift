import COpenSSL

/// Random numbers that nobody can guess, fetched from OpenSSL's generator thirty-two at a time.
///
/// An identifier takes a number for each letter, and a call of the system for each would cost more than the rest of
/// making it. A class, so that no copy hands out the same numbers again; each is erased once it was given.
package final class SecureRandom: RandomNumberGenerator {
    private static let capacity = 32

    private var words = [UInt64](repeating: 0, count: capacity)
    private var position = capacity

    package init() {}

    /// Falls back on the system's generator where OpenSSL's fails.
    package func next() -> UInt64 {
        if position == words.count {
            guard fill() else {
                var system = SystemRandomNumberGenerator()
                return system.next()
            }
            position = 0
        }
        defer {
            words[position] = 0
            position += 1
        }
        return words[position]
    }

    private func fill() -> Bool {
        unsafe words.withUnsafeMutableBytes { words in
            unsafe RAND_bytes(words.bindMemory(to: UInt8.self).baseAddress, CInt(words.count)) == 1
        }
    }
}
