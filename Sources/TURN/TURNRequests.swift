import Base
import Wire

/// The error response to an authentic request.
struct RequestRefusal: Error {
    let code: STUNErrorCode
    /// For error 420 only: the attributes that the relay does not know.
    var unknown: [STUNAttribute] = []

    static let badRequest = RequestRefusal(code: .badRequest)
    static let mismatch = RequestRefusal(code: .allocationMismatch)
    static let quota = RequestRefusal(code: .quotaReached)
}

extension RequestRefusal {
    init(_ refusal: TURNAllocation.Refusal) {
        switch refusal {
        case .forbidden: self.init(code: .forbidden)
        case .wrongFamily: self.init(code: .peerFamilyMismatch)
        case .conflict: self.init(code: .badRequest)
        case .tooMany: self.init(code: .insufficientCapacity)
        }
    }
}

/// The checks of each request, in the order of RFC 8656.
extension TURNAgent {
    /// REQUESTED-TRANSPORT: the protocol number of UDP (RFC 8656 §18.8).
    private static let udp: UInt32 = 17
    /// The flag in EVEN-PORT that reserves the next port, too (RFC 8656 §18.7).
    private static let reservesNext: UInt8 = 0x80
    /// REQUESTED-ADDRESS-FAMILY: whether a value means IPv4.
    private static let families: [UInt32: Bool] = [0x01: true, 0x02: false]

    /// Refuses attributes that must be understood and are not (error 420).
    private func checkAttributes(_ message: STUNMessage) throws(RequestRefusal) {
        let unknown = message.attributes.map(\.type).filter {
            $0.isComprehensionRequired && !$0.isKnownToRelay
        }
        guard unknown.isEmpty else { throw RequestRefusal(code: .unknownAttribute, unknown: unknown) }
    }

    /// The client's allocation, if the request comes from the user that made it.
    private func own(_ request: Request, at now: MonotonicTime) throws(RequestRefusal) -> TURNAllocation {
        guard let allocation, allocation.end > now else { throw .mismatch }
        guard allocation.username == request.username else { throw RequestRefusal(code: .wrongCredentials) }
        return allocation
    }

    /// Checks an Allocate request.
    ///
    /// - Returns: whether an IPv4 address is requested, and whether its port has to be even.
    /// - Source: RFC 8656 §7.2.
    func checkAllocation(
        _ request: Request, _ bytes: Span<UInt8>
    ) throws(RequestRefusal) -> (isIPv4: Bool, isEven: Bool) {
        let message = request.message
        try checkAttributes(message)
        guard let transport = try number(.requestedTransport, message, bytes) else { throw .badRequest }
        guard transport >> 24 == Self.udp else { throw RequestRefusal(code: .transportNotSupported) }
        let evenPort = message[.evenPort]
        var keepsNext = false
        if let evenPort {
            guard !evenPort.isEmpty, let flags = try? bytes.uint8(at: evenPort.lowerBound) else {
                throw .badRequest
            }
            keepsNext = flags & Self.reservesNext != 0
        }
        // Ports are never reserved for a later request.
        guard message[.reservationToken] == nil, !keepsNext else {
            throw RequestRefusal(code: .insufficientCapacity)
        }
        let isIPv4 = try family(message, bytes) ?? true
        guard policy.hasPeers(isIPv4: isIPv4) else { throw RequestRefusal(code: .familyNotSupported) }
        return (isIPv4, evenPort != nil)
    }

    /// Checks a Refresh request.
    ///
    /// - Returns: the new lifetime from now on; zero ends the allocation.
    /// - Source: RFC 8656 §8.2.
    func checkRefresh(
        _ request: Request, _ bytes: Span<UInt8>, at now: MonotonicTime
    ) throws(RequestRefusal) -> Duration {
        try checkAttributes(request.message)
        let allocation = try own(request, at: now)
        if let isIPv4 = try family(request.message, bytes), isIPv4 != (allocation.relayed.ip.ipv4 != nil) {
            throw RequestRefusal(code: .peerFamilyMismatch)
        }
        return try number(.lifetime, request.message, bytes) == 0 ? .zero : policy.lifetime
    }

    /// Performs a CreatePermission request.
    ///
    /// - Source: RFC 8656 §10.2.
    mutating func permit(
        _ request: Request, _ bytes: Span<UInt8>, at now: MonotonicTime
    ) throws(RequestRefusal) {
        try checkAttributes(request.message)
        var allocation = try own(request, at: now)
        guard let peers = try? request.message.peers(in: bytes), !peers.isEmpty else { throw .badRequest }
        do throws(TURNAllocation.Refusal) {
            try allocation.permit(peers, by: policy, at: now)
        } catch {
            throw RequestRefusal(error)
        }
        self.allocation = allocation
    }

    /// Performs a ChannelBind request.
    ///
    /// - Source: RFC 8656 §12.2.
    mutating func bind(
        _ request: Request, _ bytes: Span<UInt8>, at now: MonotonicTime
    ) throws(RequestRefusal) {
        try checkAttributes(request.message)
        var allocation = try own(request, at: now)
        guard let field = try number(.channelNumber, request.message, bytes),
            let number = ChannelNumber(UInt16(truncatingIfNeeded: field >> 16)),
            let peers = try? request.message.peers(in: bytes), let peer = peers.first
        else { throw .badRequest }
        do throws(TURNAllocation.Refusal) {
            try allocation.bind(number, to: peer, by: policy, at: now)
        } catch {
            throw RequestRefusal(error)
        }
        self.allocation = allocation
    }

    /// Whether IPv4 is requested; nil without the attribute.
    private func family(_ message: STUNMessage, _ bytes: Span<UInt8>) throws(RequestRefusal) -> Bool? {
        guard let field = try number(.requestedAddressFamily, message, bytes) else { return nil }
        guard let isIPv4 = Self.families[field >> 24] else { throw RequestRefusal(code: .familyNotSupported) }
        return isIPv4
    }

    /// The first 32 bits of an attribute's value; nil without the attribute.
    private func number(
        _ type: STUNAttribute, _ message: STUNMessage, _ bytes: Span<UInt8>
    ) throws(RequestRefusal) -> UInt32? {
        do throws(WireError) {
            return try message.uint32(type, in: bytes)
        } catch {
            throw .badRequest
        }
    }
}

/// A datagram from a peer that has no channel, for the client.
///
/// - Source: RFC 8656 §11.
enum DataIndication {
    static func append(_ datagram: Span<UInt8>, from peer: TransportAddress, to output: inout [UInt8]) {
        // An indication has no response, so no transaction has to be found by its ID.
        let id = STUNTransactionID(high: 0, low: 0)
        let address = XORAddress.encode(peer, id)
        let padding = -datagram.count & 3
        output.append(bigEndian: STUNKind.dataIndication.rawValue)
        output.append(bigEndian: UInt16(truncatingIfNeeded: 8 + address.count + datagram.count + padding))
        output.append(bigEndian: STUNMessage.magicCookie)
        output.append(contentsOf: repeatElement(0, count: 12))
        output.append(bigEndian: STUNAttribute.xorPeerAddress.rawValue)
        output.append(bigEndian: UInt16(truncatingIfNeeded: address.count))
        output.append(contentsOf: address)
        output.append(bigEndian: STUNAttribute.data.rawValue)
        output.append(bigEndian: UInt16(truncatingIfNeeded: datagram.count))
        output.append(contentsOf: datagram)
        output.append(contentsOf: repeatElement(0, count: padding))
    }
}
