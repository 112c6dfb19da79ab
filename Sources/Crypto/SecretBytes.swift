import COpenSSL
import Synchronization

/// Bytes of a key, in memory of their own that is wiped before it is given back.
///
/// An object, so that there is one copy of them however often it is handed on; of an array there would be copies that
/// nobody wipes.
package final class SecretBytes: Sendable, CustomStringConvertible, CustomDebugStringConvertible,
    CustomReflectable
{
    /// Enough for what DTLS exports for SRTP, and for a block of its own keys.
    static let capacity = 96

    package let count: Int
    private let storage = Mutex(InlineArray<96, UInt8>(repeating: 0))
    private let released: (@Sendable ([UInt8]) -> Void)?

    /// - Parameters:
    ///   - count: at most `capacity`.
    ///   - released: hears what the memory holds when it is given back, for tests.
    ///   - fill: is given zeros; false if it could not fill them.
    /// - Returns: nil if that is more than there is room for, or they could not be filled.
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

    /// Copies bytes that are no secret yet or any more, such as those of a test.
    package convenience init?(copying bytes: some Collection<UInt8>) {
        unsafe self.init(count: bytes.count) { memory in
            for (index, byte) in bytes.enumerated() { unsafe memory[index] = byte }
            return true
        }
    }

    deinit {
        let last: [UInt8] = storage.withLock { storage in
            unsafe withUnsafeMutableBytes(of: &storage) { bytes in
                unsafe OPENSSL_cleanse(bytes.baseAddress, bytes.count)
                return unsafe released == nil ? [] : Array(bytes)
            }
        }
        released?(last)
    }

    /// Lends them; they must not be copied to where nobody wipes them.
    func withBytes(_ body: (UnsafeBufferPointer<UInt8>) -> Void) {
        let count = count
        storage.withLock { storage in
            unsafe withUnsafeBytes(of: &storage) { bytes in
                unsafe body(UnsafeBufferPointer(rebasing: bytes.bindMemory(to: UInt8.self)[..<count]))
            }
        }
    }

    /// A part of them, in memory of its own.
    func part(_ range: Range<Int>) -> SecretBytes? {
        guard range.lowerBound >= 0, range.upperBound <= count else { return nil }
        return unsafe SecretBytes(count: range.count) { memory in
            unsafe withBytes { bytes in
                for (index, place) in range.enumerated() { unsafe memory[index] = unsafe bytes[place] }
            }
            return true
        }
    }

    /// A copy that nobody wipes.
    ///
    /// Deliberately long to read: each use is a place to look at.
    package var exposed: [UInt8] {
        var copy: [UInt8] = []
        unsafe withBytes { copy = unsafe Array($0) }
        return copy
    }

    package var description: String { "<secret>" }
    package var debugDescription: String { "<secret>" }
    package var customMirror: Mirror { Mirror(self, children: []) }
}
