import Base

/// `a=candidate`: an address at which one side may be reachable.
///
/// - Source: RFC 8839 §5.1, RFC 6544 §4.5 (TCP).
package struct ICECandidate: SDPValue {
    /// In lower case; parsing accepts any case, because some clients write `UDP`.
    package enum Transport: String, Sendable {
        case udp, tcp
    }

    /// Which side opens the TCP connection (RFC 6544 §4.5).
    package enum TCPType: String, Sendable {
        case active, passive, so
    }

    /// Equal for candidates of the same type, base address and transport.
    package var foundation: String
    /// 1 for RTP, and for RTCP on the same port.
    package var component: UInt16
    /// Candidates with other transports are refused.
    package var transport: Transport
    /// Candidates with higher priorities are checked first (RFC 8445 §5.1.2).
    package var priority: UInt32
    /// An IP address, or a host name such as the `.local` names of browsers that hide their addresses.
    package var address: String
    /// For an active TCP candidate 9, the discard port.
    package var port: UInt16
    /// `host`, `srflx`, `prflx`, `relay`, or an unknown type.
    package var type: String
    /// The base or mapped address of a reflexive or relayed candidate.
    package var relatedAddress: String?
    /// The port of `relatedAddress`.
    package var relatedPort: UInt16?
    /// Nil for UDP.
    package var tcpType: TCPType?
    /// Other properties, such as `generation 0 ufrag Ab12`.
    package var extensions: [SDPAttribute]

    /// Parses the value of `a=candidate`, with or without the prefix `candidate:` of the browser API.
    package init(parsing text: String) throws(WireError) {
        let prefix = "candidate:"
        var scanner = SDPScanner(text.hasPrefix(prefix) ? String(text.dropFirst(prefix.count)) : text)
        // A foundation contains no colon, so a second prefix is refused.
        guard let foundation = scanner.word(), !foundation.contains(":"),
            let component = scanner.word().flatMap({ UInt16(digits: $0) }),
            let transport = scanner.word().flatMap({ Transport(rawValue: String($0).lowercased()) }),
            let priority = scanner.word().flatMap({ UInt32(digits: $0) }),
            let address = scanner.word(), let port = scanner.word().flatMap({ UInt16(digits: $0) }),
            scanner.word() == "typ", let type = scanner.word()
        else { throw .invalid(.sdpCandidate) }
        self.foundation = String(foundation)
        self.component = component
        self.transport = transport
        self.priority = priority
        self.address = String(address)
        self.port = port
        self.type = String(type)
        extensions = []
        while let name = scanner.word() {
            guard let value = scanner.word() else { throw .invalid(.sdpCandidate) }
            try take(String(name), String(value))
        }
    }

    private mutating func take(_ name: String, _ value: String) throws(WireError) {
        switch name {
        case "raddr": relatedAddress = value
        case "rport":
            guard let port = UInt16(digits: value[...]) else { throw .invalid(.sdpCandidate) }
            relatedPort = port
        case "tcptype":
            guard let type = TCPType(rawValue: value) else { throw .invalid(.sdpCandidate) }
            tcpType = type
        default: extensions.append(SDPAttribute(.init(name), value))
        }
    }

    /// Creates a host candidate of the server.
    ///
    /// - Parameters:
    ///   - index: the position among our candidates, from 0; earlier ones have a higher priority.
    ///   - transport: TCP candidates are passive and rank below every UDP candidate.
    package init(host address: TransportAddress, transport: Transport = .udp, index: Int = 0) {
        // RFC 8445 §5.1.2.1; RFC 6544 §4.2: direction preference 4 for passive.
        let rank = UInt32(truncatingIfNeeded: max(0, min(index, 0x1FFF)))
        let localPreference: UInt32 = transport == .udp ? 0xFFFF &- rank : 4 << 13 | (0x1FFF &- rank)
        let typePreference: UInt32 = transport == .udp ? 126 : 90
        foundation = "\(transport.rawValue)\(index)"
        component = 1
        self.transport = transport
        priority = typePreference << 24 | localPreference << 8 | 255
        self.address = address.ip.description
        port = address.port
        type = "host"
        tcpType = transport == .tcp ? .passive : nil
        extensions = []
    }

    /// The address and port; nil for a candidate with a host name.
    package var transportAddress: TransportAddress? {
        IPAddress(address).map {
            TransportAddress(ip: $0, port: port, transport: transport == .tcp ? .tcp : .udp)
        }
    }

    package var text: String {
        var text =
            "\(foundation) \(component) \(transport.rawValue) \(priority) \(address) \(port) typ \(type)"
        if let relatedAddress { text += " raddr \(relatedAddress)" }
        if let relatedPort { text += " rport \(relatedPort)" }
        if let tcpType { text += " tcptype \(tcpType.rawValue)" }
        for item in extensions { text += " \(item.name) \(item.value ?? "")" }
        return text
    }
}

extension SDPSection {
    /// The valid candidates; others are ignored, as RFC 8839 §5.1 requires for unknown transports.
    package var candidates: [ICECandidate] {
        all(.candidate).compactMap { text in
            do throws(WireError) { return try ICECandidate(parsing: text) } catch { return nil }
        }
    }
}

extension WireError.Field {
    /// A candidate that is incomplete or has an invalid field; only the candidate is ignored, not the description.
    package static var sdpCandidate: Self { .init("sdp.candidate") }
}
