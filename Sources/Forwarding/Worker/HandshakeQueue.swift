import Base
import Peer
import Wire

/// DTLS records of clients who are joining, until the media of their batch has been taken care of.
///
/// A record of a handshake takes a thousand times as long as a packet of media. When many join at once, a worker does
/// a few at a time and looks after media in between, so that those who are watching notice nothing.
struct HandshakeQueue {
    /// About four milliseconds.
    static let perTurn = 16
    /// Beyond this records get lost; DTLS sends them again.
    static let limit = 4_096
    /// Of one session: two of a client's flights, with certificates cut in pieces.
    ///
    /// Whoever sends more fills no place that others need.
    static let limitForEach = 16

    struct Record {
        let session: SessionID
        let bytes: [UInt8]
        let source: TransportAddress
    }

    private var records: [Record] = []
    private var first = 0
    /// How many of each session's wait; none that has none.
    private var counts: [SessionID: Int] = [:]

    var isEmpty: Bool { first == records.count }

    /// - Returns: false if there is no room.
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

    /// The one that has waited longest.
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
    /// Goes on with a few handshakes.
    func shakeHands(at now: MonotonicTime, into sink: inout some DatagramSink & ~Copyable) {
        for _ in 0..<HandshakeQueue.perTurn {
            guard let record = joining.next() else { return }
            guard let session = session(at: record.source) else { continue }
            session.connection.receiveHandshake(record.bytes.span, from: record.source, at: now, into: &sink)
            settle(session, at: now, into: &sink)
        }
    }
}
