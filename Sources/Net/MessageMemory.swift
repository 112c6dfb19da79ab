import Base
import CLinux
import Glibc

/// The memory that `sendmmsg` and `recvmmsg` work on: bytes, and the tables that point into them.
///
/// The one place in Rostrum that holds raw memory. It is allocated once, and never moves because the kernel's tables
/// hold pointers; the batches above know it by offsets and indices only. Pages are not resident before their first use.
@safe struct MessageMemory: ~Copyable {
    struct Capacity {
        var bytes: Int
        /// Messages in one system call.
        var messages: Int
        /// Pieces that the messages of one call gather.
        var vectors: Int
        /// Remote addresses.
        var names: Int
    }

    /// One message that arrived.
    struct Arrival {
        let bytes: Range<Int>
        let source: TransportAddress
        /// The size of the datagrams within; the last may be smaller.
        let segmentSize: Int
        let isTruncated: Bool
        /// When it came, in nanoseconds of the realtime clock; 0 where the socket does not say.
        let realtime: Int64
    }

    let capacity: Capacity
    // All of it is made in `init` and freed in `deinit`. Headers point into it for the kernel, so it must not move;
    // ranges come from `SendBatch` and `ReceiveBatch`, which keep them within `capacity`.
    private let bytes: UnsafeMutableBufferPointer<UInt8>
    private let messages: UnsafeMutableBufferPointer<clinux_message>
    private let controls: UnsafeMutableBufferPointer<clinux_control>
    private let vectors: UnsafeMutableBufferPointer<iovec>
    private let names: UnsafeMutableBufferPointer<sockaddr_in6>
    private let nameLength: socklen_t
    private let isIPv4: Bool

    /// - Parameter isIPv4: the family of the socket that the addresses are for.
    init(_ capacity: Capacity, isIPv4: Bool) {
        self.capacity = capacity
        self.isIPv4 = isIPv4
        let length = isIPv4 ? MemoryLayout<sockaddr_in>.size : MemoryLayout<sockaddr_in6>.size
        nameLength = socklen_t(length)
        unsafe bytes = unsafe Self.zeroed(capacity.bytes)
        unsafe messages = unsafe Self.zeroed(capacity.messages)
        unsafe controls = unsafe Self.zeroed(capacity.messages)
        unsafe vectors = unsafe Self.zeroed(capacity.vectors)
        unsafe names = unsafe Self.zeroed(capacity.names)
    }

    /// Zeroed by `calloc`, which leaves large blocks to the kernel's untouched pages.
    private static func zeroed<Element>(_ count: Int) -> UnsafeMutableBufferPointer<Element> {
        guard let block = unsafe calloc(max(count, 1), MemoryLayout<Element>.stride) else {
            preconditionFailure("no memory for a worker's buffers")
        }
        return unsafe UnsafeMutableBufferPointer(
            start: block.bindMemory(to: Element.self, capacity: count), count: count)
    }

    deinit {
        unsafe free(bytes.baseAddress)
        unsafe free(messages.baseAddress)
        unsafe free(controls.baseAddress)
        unsafe free(vectors.baseAddress)
        unsafe free(names.baseAddress)
    }

    // MARK: Bytes

    /// Lets `body` read and change one stretch of the bytes.
    mutating func withBytes<Result, Failure: Error>(
        at offset: Int, count: Int, _ body: (inout MutableSpan<UInt8>) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        var span = unsafe UnsafeMutableBufferPointer(rebasing: bytes[offset..<(offset + count)]).mutableSpan
        return try body(&span)
    }

    /// Copies a stretch of bytes out of another memory.
    mutating func copy(from other: borrowing MessageMemory, at source: Int, count: Int, to offset: Int) {
        guard let from = unsafe other.bytes.baseAddress, let into = unsafe bytes.baseAddress else { return }
        unsafe memcpy(into + offset, from + source, count)
    }

    // MARK: Sending

    /// Writes the address that messages name by `index`.
    mutating func setName(_ index: Int, to address: TransportAddress) {
        _ = unsafe clinux_store_address(&names[index], clinux_address(address), isIPv4 ? 1 : 0)
    }

    /// Points a vector at a stretch of the bytes.
    mutating func setVector(_ index: Int, offset: Int, count: Int) {
        unsafe vectors[index] = unsafe iovec(
            iov_base: bytes.baseAddress.map { unsafe UnsafeMutableRawPointer($0 + offset) }, iov_len: count)
    }

    /// Lengthens a vector over the bytes behind it.
    mutating func extendVector(_ index: Int, by count: Int) {
        // Not in place: Swift 6.3 makes invalid code of that under the thread sanitizer.
        var vector = unsafe vectors[index]
        unsafe vector.iov_len &+= count
        unsafe vectors[index] = unsafe vector
    }

    /// Makes a message of some vectors.
    /// - Parameter segmentSize: cut it into datagrams of this many bytes; nil sends it as one.
    mutating func setMessage(_ index: Int, name: Int, vectors range: Range<Int>, segmentSize: Int?) {
        var header = unsafe msghdr()
        unsafe header.msg_name = unsafe names.baseAddress.map { unsafe UnsafeMutableRawPointer($0 + name) }
        unsafe header.msg_namelen = nameLength
        unsafe header.msg_iov = unsafe vectors.baseAddress.map { unsafe $0 + range.lowerBound }
        unsafe header.msg_iovlen = range.count
        if let segmentSize, let control = unsafe controls.baseAddress {
            unsafe clinux_set_segment_size(&header, control + index, UInt16(truncatingIfNeeded: segmentSize))
        }
        unsafe messages[index].header = unsafe header
    }

    /// Hands messages to the kernel.
    /// - Returns: how many it took, or a negative errno about the first of them.
    mutating func send(_ range: Range<Int>, through socket: DatagramSocket) -> Int {
        guard let first = unsafe messages.baseAddress else { return 0 }
        return unsafe Int(clinux_send(socket.descriptor, first + range.lowerBound, UInt32(range.count)))
    }

    // MARK: Receiving

    /// Points message `index` at its own stretch of the bytes, name and control block.
    mutating func prepareReceive(_ index: Int, offset: Int, count: Int) {
        setVector(index, offset: offset, count: count)
        var header = unsafe msghdr()
        unsafe header.msg_name = unsafe names.baseAddress.map { unsafe UnsafeMutableRawPointer($0 + index) }
        unsafe header.msg_namelen = socklen_t(MemoryLayout<sockaddr_in6>.size)
        unsafe header.msg_iov = unsafe vectors.baseAddress.map { unsafe $0 + index }
        unsafe header.msg_iovlen = 1
        unsafe header.msg_control = unsafe controls.baseAddress.map {
            unsafe UnsafeMutableRawPointer($0 + index)
        }
        unsafe header.msg_controllen = MemoryLayout<clinux_control>.size
        unsafe messages[index].header = unsafe header
    }

    /// Fills prepared messages from the front.
    /// - Returns: how many, or a negative errno.
    mutating func receive(_ count: Int, from socket: DatagramSocket) -> Int {
        guard let first = unsafe messages.baseAddress else { return 0 }
        return unsafe Int(clinux_receive(socket.descriptor, first, UInt32(count)))
    }

    /// What the last call put into message `index`, whose bytes begin at `offset`.
    /// - Parameter isStamped: whether the socket tells when messages came.
    func arrival(_ index: Int, offset: Int, isStamped: Bool) -> Arrival {
        let length = unsafe Int(messages[index].length)
        let segmentSize = unsafe Int(clinux_segment_size(&messages[index].header))
        return unsafe Arrival(
            bytes: offset..<(offset + length),
            source: TransportAddress(clinux_load_address(&names[index])),
            segmentSize: segmentSize > 0 ? segmentSize : max(length, 1),
            isTruncated: messages[index].header.msg_flags & Int32(MSG_TRUNC) != 0,
            realtime: isStamped ? clinux_arrival_time(&messages[index].header) : 0)
    }
}
