import COpenSSL

/// Unpredictable random numbers, fetched from OpenSSL's generator thirty-two at a time.
///
/// An identifier needs a number for each letter, and a call of the generator for each would cost more than the rest
/// of making it. It is a class, so that no copy returns the same numbers again. Each number is erased once it was
/// returned.
package final class SecureRandom: RandomNumberGenerator {
    private static let capacity = 32

    private var words = [UInt64](repeating: 0, count: capacity)
    private var position = capacity

    /// A generator whose first number fetches a supply.
    package init() {}

    /// Returns a number; uses the system's generator if OpenSSL's fails.
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

    /// Replaces all numbers; false if OpenSSL's generator fails.
    private func fill() -> Bool {
        unsafe words.withUnsafeMutableBytes { words in
            unsafe RAND_bytes(words.bindMemory(to: UInt8.self).baseAddress, CInt(words.count)) == 1
        }
    }
}
