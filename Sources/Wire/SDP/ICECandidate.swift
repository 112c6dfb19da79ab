import Base

/// `a=candidate`: an address at which a side may be reached.
///
/// - Source: RFC 8839 §5.1, RFC 6544 §4.5 (TCP).
package struct ICECandidate: SDPValue {
    /// In lower case, though some write `UDP`.
    package enum Transport: String, Sendable {
        case udp, tcp
    }

    /// Who opens the connection (RFC 6544 §4.5).
    package enum TCPType: String, Sendable {
        case active, passive, so
    }

    /// The same for candidates of one kind from one address by one transport.
    package var foundation: String
    /// 1 for RTP, and for RTCP where it shares the port.
    package var component: UInt16
    /// Others than these are refused.
    package var transport: Transport
    /// Higher ones are checked first (RFC 8445 §5.1.2).
    package var priority: UInt32
    /// An IP address, or a name such as the `.local` ones of browsers that hide their addresses.
    package var address: String
    /// 9, discard, of an active TCP candidate.
    package var port: UInt16
    /// `host`, `srflx`, `prflx`, `relay`, or one we do not know.
    package var type: String
    /// Behind a reflexive or relayed candidate: the base or mapped address.
    package var relatedAddress: String?
    /// Of `relatedAddress`.
    package var relatedPort: UInt16?
    /// Nil for UDP.
    package var tcpType: TCPType?
    /// What else is said, such as `generation 0 ufrag Ab12`.
    package var extensions: [SDPAttribute]

    /// Parses what stands after `a=candidate:`; also takes the form of the browser API, `candidate:…`.
    package init(parsing text: String) throws(WireError) {
        let prefix = "candidate:"
        var scanner = SDPScanner(text.hasPrefix(prefix) ? String(text.dropFirst(prefix.count)) : text)
        // No ice-char is a colon: a second prefix is none.
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

    /// A host candidate of ours.
    ///
    /// - Parameters:
    ///   - index: its place among our candidates, from 0; earlier ones have a higher priority.
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

    /// Nil for a candidate given by name.
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
    /// The candidates we understand; others are ignored, as RFC 8839 §5.1 asks for unknown transports.
    package var candidates: [ICECandidate] {
        all(.candidate).compactMap { text in
            do throws(WireError) { return try ICECandidate(parsing: text) } catch { return nil }
        }
    }
}

extension WireError.Field {
    /// A candidate that ends early or has a field of another kind; it is ignored, not the description.
    package static var sdpCandidate: Self { .init("sdp.candidate") }
}
