import CUSRSCTP

/// A notification of usrsctp about an association.
/// - Source: RFC 6458 §6.1, RFC 6525 §6.1.1.
enum SCTPNotification: Equatable {
    /// The association is established, with these numbers of streams.
    case up(incoming: UInt16, outgoing: UInt16)
    /// The peer has restarted the association with a new INIT.
    case restarted
    /// The association is gone, or the peer is shutting it down.
    case lost
    /// The peer reset these streams in its direction; an empty list means all.
    case incomingReset([UInt16])
    /// A reset that `resetOutgoing` requested was done.
    case outgoingReset([UInt16])
    /// A reset that `resetOutgoing` requested was refused or failed.
    case resetRefused([UInt16])
    /// The rest of a message, of which pieces were already read, will not arrive.
    case messageAborted(stream: UInt16)
    /// Nothing of interest.
    case other

    /// - Parameter bytes: a `union sctp_notification`, in the byte order of this machine.
    init(_ bytes: [UInt8]) {
        // Offsets are those of the C structures; a field beyond the end reads as zero.
        func uint16(_ offset: Int) -> UInt16 {
            guard offset >= 0, offset + 2 <= bytes.count else { return 0 }
            return unsafe bytes.withUnsafeBytes {
                unsafe $0.loadUnaligned(fromByteOffset: offset, as: UInt16.self)
            }
        }
        let (type, flags) = (CInt(uint16(0)), CInt(uint16(2)))
        switch type {
        case SCTP_ASSOC_CHANGE:
            self = Self.change(CInt(uint16(8)), outgoing: uint16(12), incoming: uint16(14))
        case SCTP_SHUTDOWN_EVENT: self = .lost
        case SCTP_STREAM_RESET_EVENT:
            let streams = stride(from: 12, to: max(12, bytes.count - 1), by: 2).map { uint16($0) }
            self = Self.reset(flags, streams)
        case SCTP_PARTIAL_DELIVERY_EVENT:
            let offset = MemoryLayout<sctp_pdapi_event>.offset(of: \.pdapi_stream) ?? 0
            self = .messageAborted(stream: uint16(offset))
        default: self = .other
        }
    }

    private static func change(_ state: CInt, outgoing: UInt16, incoming: UInt16) -> Self {
        switch state {
        case SCTP_COMM_UP: .up(incoming: incoming, outgoing: outgoing)
        case SCTP_RESTART: .restarted
        case SCTP_COMM_LOST, SCTP_SHUTDOWN_COMP, SCTP_CANT_STR_ASSOC: .lost
        default: .other
        }
    }

    private static func reset(_ flags: CInt, _ streams: [UInt16]) -> Self {
        if flags & (SCTP_STREAM_RESET_DENIED | SCTP_STREAM_RESET_FAILED) != 0 {
            return .resetRefused(streams)
        }
        if flags & SCTP_STREAM_RESET_INCOMING_SSN != 0 { return .incomingReset(streams) }
        if flags & SCTP_STREAM_RESET_OUTGOING_SSN != 0 { return .outgoingReset(streams) }
        return .other
    }
}
