import COpenSSL

/// An encrypted packet, whose authentication tag may still be missing.
///
/// SHA-1 is a chain of steps that each need the one before, but sixteen packets can be hashed side by side in the
/// time of three. Where the processor supports that, counter mode leaves the tag to the code that gathers packets.
/// Other callers complete each packet immediately.
package struct EncryptedPacket {
    /// Bytes of the packet, tag included; 0 if there is no packet.
    package let length: Int
    /// Nil if the packet is complete.
    package let pendingTag: PendingTag?

    /// A complete packet.
    package init(length: Int) {
        self.length = length
        pendingTag = nil
    }

    /// - Parameter length: tag included, although it is still missing.
    init(length: Int, pendingTag: PendingTag) {
        self.length = length
        self.pendingTag = pendingTag
    }

    /// Writes the tag if it is missing.
    ///
    /// - Parameter packet: the memory that begins with the packet.
    /// - Returns: the packet's length.
    package func complete(_ packet: inout MutableSpan<UInt8>) -> Int {
        guard let pendingTag, length <= packet.count else { return length }
        unsafe packet.withUnsafeMutableBufferPointer { bytes in
            var job = pendingTag.job
            unsafe rostrum_sha1_tags_write(&job, 1, bytes.baseAddress)
        }
        return length
    }
}

/// What is needed to compute a packet's HMAC-SHA1 tag, besides the packet itself.
package struct PendingTag {
    /// Contains the key's hash states, copied, because the key's owner may be gone when the tag is computed.
    fileprivate var job = rostrum_sha1_tag()

    /// - Parameter length: bytes of the packet without the tag.
    init(_ key: rostrum_hmac_sha1_key, rollOverCounter: UInt32, length: Int) {
        job.key = key
        job.roc = rollOverCounter
        job.length = UInt32(truncatingIfNeeded: length)
    }
}

/// Packets in one range of memory whose tags are computed together.
package struct TagGroup: ~Copyable {
    private static let capacity = 16

    private var jobs: InlineArray<16, rostrum_sha1_tag> = .init(repeating: rostrum_sha1_tag())
    private var count = 0
    /// The end of the packet that ends last, tag included; checked against the memory.
    private var end = 0

    /// An empty group.
    package init() {}

    /// Whether no packet lacks its tag.
    package var isEmpty: Bool { count == 0 }
    /// Whether `complete` must be called before another packet can be added.
    package var isFull: Bool { count == Self.capacity }

    /// Adds a packet.
    /// - Parameter offset: where the packet begins in the memory.
    package mutating func append(_ tag: PendingTag, at offset: Int) {
        guard !isFull else { return assertionFailure("a full group of tags was not completed") }
        var job = tag.job
        job.offset = UInt32(truncatingIfNeeded: offset)
        jobs[count] = job
        count &+= 1
        end = max(end, offset &+ Int(tag.job.length) &+ Int(ROSTRUM_SHA1_80_TAG))
    }

    /// Writes all tags, and empties the group.
    /// - Parameter memory: the offsets given to `append` refer to its beginning.
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
