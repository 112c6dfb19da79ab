import COpenSSL
import Synchronization

/// The bytes of a key, in memory that is wiped before it is released.
///
/// It is an object, so that there is one copy however often it is passed on. An array would be copied, and its copies
/// would not be wiped.
package final class SecretBytes: Sendable, CustomStringConvertible, CustomDebugStringConvertible,
    CustomReflectable
{
    /// Bytes of the largest secret: what DTLS exports for SRTP, and a block of DTLS record keys, both fit.
    static let capacity = 96

    /// The number of bytes.
    package let count: Int
    /// A lock although the bytes never change: it makes the inline array usable from several threads.
    private let storage = Mutex(InlineArray<96, UInt8>(repeating: 0))
    private let released: (@Sendable ([UInt8]) -> Void)?

    /// - Parameters:
    ///   - count: at most `capacity`.
    ///   - released: called with the memory's contents after wiping, for tests.
    ///   - fill: receives zeroed memory; returns false if it could not fill it.
    /// - Returns: nil if `count` is out of range or `fill` failed.
    init?(
        count: Int, released: (@Sendable ([UInt8]) -> Void)? = nil,
        fill: (UnsafeMutableBufferPointer<UInt8>) -> Bool
    ) {
        self.count = count
        self.released = released
        guard (0...Self.capacity).contains(count) else { return nil }
        let isFilled = storage.withLock { storage in
            unsafe withUnsafeMutableBytes(of: &storage) { bytes in
                unsafe fill(UnsafeMutableBufferPointer(rebasing: bytes.bindMemory(to: UInt8.self)[..<count]))
            }
        }
        guard isFilled else { return nil }
    }

    /// Copies bytes that are not secret, such as those of a test; the original is not wiped.
    package convenience init?(copying bytes: some Collection<UInt8>) {
        unsafe self.init(count: bytes.count) { memory in
            for (index, byte) in bytes.enumerated() { unsafe memory[index] = byte }
            return true
        }
    }

    deinit {
        // The contents after wiping are copied out only if a test wants to see them.
        let last: [UInt8] = storage.withLock { storage in
            unsafe withUnsafeMutableBytes(of: &storage) { bytes in
                unsafe OPENSSL_cleanse(bytes.baseAddress, bytes.count)
                return unsafe released == nil ? [] : Array(bytes)
            }
        }
        released?(last)
    }

    /// Gives access to the bytes; `body` must not copy them into memory that is not wiped.
    func withBytes(_ body: (UnsafeBufferPointer<UInt8>) -> Void) {
        let count = count
        storage.withLock { storage in
            unsafe withUnsafeBytes(of: &storage) { bytes in
                unsafe body(UnsafeBufferPointer(rebasing: bytes.bindMemory(to: UInt8.self)[..<count]))
            }
        }
    }

    /// A copy of a part, in a `SecretBytes` of its own; nil if the range is not within the bytes.
    func part(_ range: Range<Int>) -> SecretBytes? {
        guard range.lowerBound >= 0, range.upperBound <= count else { return nil }
        return unsafe SecretBytes(count: range.count) { memory in
            unsafe withBytes { bytes in
                for (index, place) in range.enumerated() { unsafe memory[index] = unsafe bytes[place] }
            }
            return true
        }
    }

    /// A copy that is not wiped.
    ///
    /// The name is conspicuous on purpose: each use deserves a review.
    package var exposed: [UInt8] {
        var copy: [UInt8] = []
        unsafe withBytes { copy = unsafe Array($0) }
        return copy
    }

    package var description: String { "<secret>" }
    package var debugDescription: String { "<secret>" }
    /// No children, so that `dump` does not print the bytes.
    package var customMirror: Mirror { Mirror(self, children: []) }
}
