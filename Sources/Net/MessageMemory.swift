import Base
import CLinux
import Glibc

/// The memory for `sendmmsg` and `recvmmsg`: bytes, and the kernel's tables of pointers into them.
///
/// This is the only type in Rostrum that owns raw memory. It is allocated once and never moves, because the tables
/// contain pointers; `SendQueue` and `ReceiveBatch` use offsets and indices only. The kernel provides a page when it
/// is first touched, so a large capacity costs nothing until it is used.
@safe struct MessageMemory: ~Copyable {
    /// How much is allocated, in elements of each table.
    struct Capacity {
        var bytes: Int
        /// Messages that one system call can contain.
        var messages: Int
        /// Ranges of bytes (`iovec`) that the messages of one call are gathered from.
        var vectors: Int
        /// Remote addresses that messages refer to.
        var names: Int
    }

    /// One received message.
    struct Arrival {
        let bytes: Range<Int>
        let source: TransportAddress
        /// Size of each datagram in the message, in bytes; the last may be smaller.
        let segmentSize: Int
        /// Whether the message was longer than its buffer, so that its end is missing.
        let isTruncated: Bool
        /// When it arrived, in nanoseconds of CLOCK_REALTIME; 0 if the socket does not record that.
        let realtime: Int64
    }

    let capacity: Capacity
    // All of it is allocated in `init` and freed in `deinit`. The message headers contain pointers into it, so it must
    // not move. Offsets and counts come from the owners, which keep them within `capacity`.
    private let bytes: UnsafeMutableBufferPointer<UInt8>
    private let messages: UnsafeMutableBufferPointer<clinux_message>
    private let controls: UnsafeMutableBufferPointer<clinux_control>
    private let vectors: UnsafeMutableBufferPointer<iovec>
    private let names: UnsafeMutableBufferPointer<sockaddr_in6>
    private let nameLength: socklen_t
    private let isIPv4: Bool

    /// - Parameter isIPv4: the address family of the socket; `sendmmsg` needs addresses in that format.
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

    /// Allocates with `calloc`, which for large blocks returns the kernel's zero pages without touching them.
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

    /// Calls `body` with a range of the bytes, which it may read and change.
    mutating func withBytes<Result, Failure: Error>(
        at offset: Int, count: Int, _ body: (inout MutableSpan<UInt8>) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        var span = unsafe UnsafeMutableBufferPointer(rebasing: bytes[offset..<(offset + count)]).mutableSpan
        return try body(&span)
    }

    /// Copies bytes from another memory; the caller has checked both ranges.
    mutating func copy(from other: borrowing MessageMemory, at source: Int, count: Int, to offset: Int) {
        guard let from = unsafe other.bytes.baseAddress, let into = unsafe bytes.baseAddress else { return }
        unsafe memcpy(into + offset, from + source, count)
    }

    // MARK: Sending

    /// Stores the address that messages refer to by `index`.
    mutating func setName(_ index: Int, to address: TransportAddress) {
        _ = unsafe clinux_store_address(&names[index], clinux_address(address), isIPv4 ? 1 : 0)
    }

    /// Makes a vector refer to a range of the bytes.
    mutating func setVector(_ index: Int, offset: Int, count: Int) {
        unsafe vectors[index] = unsafe iovec(
            iov_base: bytes.baseAddress.map { unsafe UnsafeMutableRawPointer($0 + offset) }, iov_len: count)
    }

    /// Extends a vector over the bytes that follow it.
    ///
    /// A run of adjacent datagrams then needs one vector, not one for each.
    mutating func extendVector(_ index: Int, by count: Int) {
        // Copied out and back: changing it in place makes Swift 6.3 generate invalid code under the thread sanitizer.
        var vector = unsafe vectors[index]
        unsafe vector.iov_len &+= count
        unsafe vectors[index] = unsafe vector
    }

    /// Composes a message of consecutive vectors.
    /// - Parameter segmentSize: the kernel cuts the message into datagrams of this many bytes; nil sends it as one
    ///   datagram.
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

    /// Passes prepared messages to the kernel, in one system call that does not block.
    /// - Returns: how many messages it accepted, or a negative errno about the first of them.
    mutating func send(_ range: Range<Int>, through socket: DatagramSocket) -> Int {
        guard let first = unsafe messages.baseAddress else { return 0 }
        return unsafe Int(clinux_send(socket.descriptor, first + range.lowerBound, UInt32(range.count)))
    }

    // MARK: Receiving

    /// Gives message `index` its own range of bytes, name and control block to be filled by the kernel.
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

    /// Receives into the prepared messages from index 0 on, in one system call that does not block.
    /// - Returns: the number of messages filled, or a negative errno.
    mutating func receive(_ count: Int, from socket: DatagramSocket) -> Int {
        guard let first = unsafe messages.baseAddress else { return 0 }
        return unsafe Int(clinux_receive(socket.descriptor, first, UInt32(count)))
    }

    /// Describes what the last call received into message `index`, whose bytes begin at `offset`.
    /// - Parameter isStamped: whether the socket records arrival times.
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
