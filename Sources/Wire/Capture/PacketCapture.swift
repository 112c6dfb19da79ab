import Base

/// A pcap file as Wireshark and tcpdump read it, with the beginnings of UDP datagrams.
///
/// - Source: draft-ietf-opsawg-pcap §4 and §5; link type 101 (raw IP), times in nanoseconds.
package struct PacketCapture: Sendable {
    private static let linkType: UInt32 = 101
    /// Longest packet that the file declares, which is the longest there is.
    private static let snapLength: UInt32 = 65_535
    private static let udpLength = 8

    /// The file so far.
    package private(set) var bytes: [UInt8] = []
    /// Number of packets in the file.
    package private(set) var count = 0

    /// Begins a file with its header; its magic number declares little-endian numbers and nanoseconds.
    package init() {
        append(little: 0xA1B2_3C4D)
        // Version 2.4.
        append(little: 0x0004_0002)
        append(little: 0)
        append(little: 0)
        append(little: Self.snapLength)
        append(little: Self.linkType)
    }

    /// Appends a datagram, with IP and UDP headers reconstructed from the addresses.
    /// - Parameters:
    ///   - head: the beginning of the datagram, which is stored.
    ///   - length: length of the whole datagram in bytes.
    ///   - unixNanoseconds: time since 1970; a negative one counts as 0.
    package mutating func append(
        _ head: Span<UInt8>, of length: Int, from source: TransportAddress, to destination: TransportAddress,
        at unixNanoseconds: Int64
    ) {
        let isIPv4 = source.ip.ipv4 != nil && destination.ip.ipv4 != nil
        let headers = (isIPv4 ? 20 : 40) + Self.udpLength
        let udp = min(max(length, head.count), Int(Self.snapLength) - headers) + Self.udpLength
        let time = UInt64(max(unixNanoseconds, 0))
        append(little: UInt32(truncatingIfNeeded: time / 1_000_000_000))
        append(little: UInt32(truncatingIfNeeded: time % 1_000_000_000))
        append(little: UInt32(truncatingIfNeeded: headers + head.count))
        append(little: UInt32(truncatingIfNeeded: headers - Self.udpLength + udp))
        if isIPv4 {
            append(big: 0x4500 << 16 | UInt32(truncatingIfNeeded: 20 + udp))
            append(big: 0x0000_4000)
            // TTL 64, UDP; no checksum.
            append(big: 0x4011_0000)
            append(big: source.ip.ipv4 ?? 0)
            append(big: destination.ip.ipv4 ?? 0)
        } else {
            append(big: 0x6000_0000)
            append(big: UInt32(truncatingIfNeeded: udp) << 16 | 0x1140)
            for half in [source.ip.high, source.ip.low, destination.ip.high, destination.ip.low] {
                append(big: UInt32(truncatingIfNeeded: half >> 32))
                append(big: UInt32(truncatingIfNeeded: half))
            }
        }
        append(big: UInt32(source.port) << 16 | UInt32(destination.port))
        append(big: UInt32(truncatingIfNeeded: udp) << 16)
        bytes.append(head)
        count += 1
    }

    private mutating func append(little value: UInt32) { append(big: value.byteSwapped) }

    private mutating func append(big value: UInt32) {
        for shift: UInt32 in [24, 16, 8, 0] { bytes.append(UInt8(truncatingIfNeeded: value >> shift)) }
    }
}
