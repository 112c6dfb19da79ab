import COpenSSL

/// A packet that is encrypted, and may lack its tag still.
///
/// SHA-1 is a chain of steps of which each waits for the one before, but the hashes of sixteen packets can be made side
/// by side in the time of three. So counter mode leaves the tag to whoever gathers packets, where the processor can do
/// that; everybody else completes the packet at once.
package struct EncryptedPacket {
    /// Of the packet with its tag, in bytes; 0 where there is no packet.
    package let length: Int
    /// Nil where nothing is missing.
    package let pendingTag: PendingTag?

    /// A packet that lacks nothing.
    package init(length: Int) {
        self.length = length
        pendingTag = nil
    }

    init(length: Int, pendingTag: PendingTag) {
        self.length = length
        self.pendingTag = pendingTag
    }

    /// Writes the tag if it is missing.
    ///
    /// - Parameter packet: where the packet stands.
    /// - Returns: its length.
    package func complete(_ packet: inout MutableSpan<UInt8>) -> Int {
        guard let pendingTag, length <= packet.count else { return length }
        unsafe packet.withUnsafeMutableBufferPointer { bytes in
            var job = pendingTag.job
            unsafe rostrum_sha1_tags_write(&job, 1, bytes.baseAddress)
        }
        return length
    }
}

/// What a tag of HMAC-SHA1 is made of, besides the packet.
package struct PendingTag {
    /// The key's hash states rather than the key: whoever it belongs to may be gone by the time the tag is made.
    fileprivate var job = rostrum_sha1_tag()

    /// - Parameter length: of the packet without the tag.
    init(_ key: rostrum_hmac_sha1_key, rollOverCounter: UInt32, length: Int) {
        job.key = key
        job.roc = rollOverCounter
        job.length = UInt32(truncatingIfNeeded: length)
    }
}

/// Packets in one stretch of memory whose tags are made together.
package struct TagGroup: ~Copyable {
    private static let capacity = 16

    private var jobs: InlineArray<16, rostrum_sha1_tag> = .init(repeating: rostrum_sha1_tag())
    private var count = 0
    /// Where the last of the packets ends.
    private var end = 0

    package init() {}

    package var isEmpty: Bool { count == 0 }
    package var isFull: Bool { count == Self.capacity }

    /// - Parameter offset: where the packet stands.
    package mutating func append(_ tag: PendingTag, at offset: Int) {
        guard !isFull else { return assertionFailure("a full group of tags was not completed") }
        var job = tag.job
        job.offset = UInt32(truncatingIfNeeded: offset)
        jobs[count] = job
        count &+= 1
        end = max(end, offset &+ Int(tag.job.length) &+ Int(ROSTRUM_SHA1_80_TAG))
    }

    /// Writes the tags, and forgets the packets.
    package mutating func complete(in memory: inout MutableSpan<UInt8>) {
        defer { (count, end) = (0, 0) }
        guard end <= memory.count else {
            return assertionFailure("a packet lies behind the memory that it is said to be in")
        }
        unsafe memory.withUnsafeMutableBufferPointer { memory in
            unsafe jobs.span.withUnsafeBufferPointer { jobs in
                unsafe rostrum_sha1_tags_write(jobs.baseAddress, count, memory.baseAddress)
            }
        }
    }
}
