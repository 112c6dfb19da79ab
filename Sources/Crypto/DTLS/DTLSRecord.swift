import Wire

/// The position of one record in a datagram, and the contents of its header.
///
/// - Source: RFC 6347 §4.1.
struct DTLSRecord: Equatable {
    static let headerLength = 13
    /// Most bytes of a record's body, with room for any cipher's expansion.
    static let maximumBody = 16_384 + 256

    enum ContentType: UInt8 {
        case changeCipherSpec = 20
        case alert = 21
        case handshake = 22
        case applicationData = 23
    }

    var type: ContentType
    /// 0 before the change of cipher, 1 after it.
    var epoch: UInt16
    /// The record's bytes, header included.
    var range: Range<Int>

    /// The record's bytes after the header.
    var bodyRange: Range<Int> {
        (range.lowerBound + Self.headerLength)..<range.upperBound
    }

    /// Parses the valid records of a datagram; parsing ends at the first one that is not.
    ///
    /// RFC 6347 §4.1.2.7 requires that invalid records be dropped silently; here they never reach OpenSSL. Records of
    /// an unknown type are skipped.
    static func parse(_ datagram: Span<UInt8>) -> [DTLSRecord] {
        var records: [DTLSRecord] = []
        var offset = 0
        while let record = parse(datagram, at: offset) {
            if let record = record.known { records.append(record) }
            offset = record.end
        }
        return records
    }

    /// Parses one record; nil if it is invalid, and no `known` record if only its type is unknown.
    private static func parse(_ datagram: Span<UInt8>, at offset: Int) -> (known: DTLSRecord?, end: Int)? {
        guard let type = try? datagram.uint8(at: offset), let version = try? datagram.uint16(at: offset + 1),
            let epoch = try? datagram.uint16(at: offset + 3),
            let length = try? datagram.uint16(at: offset + 11)
        else { return nil }
        let end = offset + headerLength + Int(length)
        // A ClientHello's record may name version 1.0, whatever version it offers.
        guard version == 0xFEFD || version == 0xFEFF && epoch == 0, Int(length) <= maximumBody,
            end <= datagram.count
        else { return nil }
        guard let type = ContentType(rawValue: type) else { return (nil, end) }
        return (DTLSRecord(type: type, epoch: epoch, range: offset..<end), end)
    }

    /// Whether this is an unencrypted handshake message of type `message`, or a fragment of one.
    func carries(_ message: UInt8, in datagram: Span<UInt8>) -> Bool {
        guard type == .handshake, epoch == 0, bodyRange.count >= 12,
            let first = try? datagram.uint8(at: bodyRange.lowerBound)
        else { return false }
        return first == message
    }

    /// Type of a ClientHello (RFC 5246 §7.4).
    static let clientHello: UInt8 = 1
}

/// Numbers the records that one side sends, and packs them into datagrams.
///
/// OpenSSL cannot retransmit in virtual time, so flights are retransmitted here. A retransmitted record needs a new
/// sequence number, or the peer drops it as a replay (RFC 6347 §4.2.4). In epoch 0 the number is not authenticated,
/// so all records get their numbers here. The single record of epoch 1, Finished, is retransmitted unchanged: a peer
/// that has received it needs no retransmission.
struct DTLSRecordPacker {
    private var nextSequenceNumber: UInt64 = 0

    /// Packs the records that OpenSSL wrote into datagrams of at most `mtu` bytes.
    mutating func pack(_ output: [UInt8], mtu: Int) -> [[UInt8]] {
        var datagrams: [[UInt8]] = []
        for record in DTLSRecord.parse(output.span) {
            let bytes = output[record.range]
            if let last = datagrams.indices.last, datagrams[last].count + bytes.count <= mtu {
                datagrams[last] += bytes
            } else {
                datagrams.append(Array(bytes))
            }
        }
        return datagrams.map { number($0) }
    }

    /// Returns the datagram with new sequence numbers for its records of epoch 0.
    mutating func number(_ datagram: [UInt8]) -> [UInt8] {
        var numbered = datagram
        for record in DTLSRecord.parse(datagram.span) where record.epoch == 0 {
            for place in 0..<6 {
                numbered[record.range.lowerBound + 5 + place] = UInt8(
                    truncatingIfNeeded: nextSequenceNumber >> UInt64(40 - 8 * place))
            }
            nextSequenceNumber &+= 1
        }
        return numbered
    }

    /// An unencrypted close_notify, for a handshake that is abandoned.
    mutating func plainCloseNotify() -> [UInt8] {
        number([21, 0xFE, 0xFD, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 1, 0])
    }
}
