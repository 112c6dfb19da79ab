import Base
import Peer
import Wire

/// DTLS records of joining clients, which wait until the media of their batch has been processed.
///
/// A handshake record takes a thousand times as long as a media packet. When many clients join at the same time, a
/// worker processes a few records at a time and media in between, so that present viewers are not affected.
struct HandshakeQueue {
    /// Maximum number of records per turn, which take about four milliseconds.
    static let perTurn = 16
    /// Maximum number of waiting records; more are dropped, and DTLS sends them again.
    static let limit = 4_096
    /// Maximum number of waiting records per session: two of a client's flights with fragmented certificates.
    ///
    /// The limit keeps a client that sends more from taking room that others need.
    static let limitForEach = 16

    /// One received datagram with DTLS records.
    struct Record {
        let session: SessionID
        let bytes: [UInt8]
        let source: TransportAddress
    }

    private var records: [Record] = []
    private var first = 0
    /// Number of waiting records per session; sessions without any have no entry.
    private var counts: [SessionID: Int] = [:]

    var isEmpty: Bool { first == records.count }

    /// Adds a copy of a datagram.
    /// - Returns: false if it was dropped for lack of room.
    mutating func append(
        _ datagram: Span<UInt8>, of session: SessionID, from source: TransportAddress
    ) -> Bool {
        guard records.count - first < Self.limit, counts[session, default: 0] < Self.limitForEach else {
            return false
        }
        counts[session, default: 0] += 1
        var bytes: [UInt8] = []
        bytes.append(datagram)
        records.append(Record(session: session, bytes: bytes, source: source))
        return true
    }

    /// Removes and returns the record that has waited longest; nil if there is none.
    mutating func next() -> Record? {
        guard !isEmpty else { return nil }
        let session = records[first].session
        let count = counts[session, default: 1] - 1
        counts[session] = count > 0 ? count : nil
        defer {
            first += 1
            if first == records.count {
                records.removeAll(keepingCapacity: records.capacity <= 64)
                first = 0
            } else if first >= 256 {
                records.removeFirst(first)
                first = 0
            }
        }
        return records[first]
    }
}

extension Worker {
    /// Processes up to `HandshakeQueue.perTurn` waiting records.
    func shakeHands(at now: MonotonicTime, into sink: inout some DatagramSink & ~Copyable) {
        for _ in 0..<HandshakeQueue.perTurn {
            guard let record = joining.next() else { return }
            guard let session = session(at: record.source) else { continue }
            session.connection.receiveHandshake(record.bytes.span, from: record.source, at: now, into: &sink)
            settle(session, at: now, into: &sink)
        }
    }
}
