/// A message of RTMP, put together out of its chunks.
/// - Source: Adobe, RTMP 1.0 (2012), §5.3.1 and §6.1.1.
package struct RTMPMessage: Equatable, Sendable {
    /// What the payload is.
    package struct Kind: Equatable, Sendable {
        package let rawValue: UInt8

        package init(rawValue: UInt8) {
            self.rawValue = rawValue
        }

        package static let setChunkSize = Kind(rawValue: 1)
        package static let abort = Kind(rawValue: 2)
        package static let acknowledgement = Kind(rawValue: 3)
        package static let userControl = Kind(rawValue: 4)
        package static let windowSize = Kind(rawValue: 5)
        package static let peerBandwidth = Kind(rawValue: 6)
        package static let audio = Kind(rawValue: 8)
        package static let video = Kind(rawValue: 9)
        /// Data and commands in AMF 3, which are AMF 0 behind a byte that is 0.
        package static let dataAMF3 = Kind(rawValue: 15)
        package static let commandAMF3 = Kind(rawValue: 17)
        package static let data = Kind(rawValue: 18)
        package static let command = Kind(rawValue: 20)
    }

    package var kind: Kind
    /// In milliseconds, modulo 2^32.
    package var timestamp: UInt32
    /// 0 for what concerns the connection; ours is 1.
    package var stream: UInt32
    package var payload: [UInt8]

    package init(_ kind: Kind, timestamp: UInt32 = 0, stream: UInt32 = 0, payload: [UInt8]) {
        self.kind = kind
        self.timestamp = timestamp
        self.stream = stream
        self.payload = payload
    }

    /// One whose payload is a number of four bytes.
    package init(_ kind: Kind, number: UInt32) {
        var payload: [UInt8] = []
        payload.append(bigEndian: number)
        self.init(kind, payload: payload)
    }

    /// One that tells of a stream or a connection.
    package init(_ event: RTMPUserControl, value: UInt32) {
        var payload: [UInt8] = []
        payload.append(bigEndian: event.rawValue)
        payload.append(bigEndian: value)
        self.init(.userControl, payload: payload)
    }
}

/// What a user control message tells.
/// - Source: Adobe, RTMP 1.0 (2012), §7.1.7.
package enum RTMPUserControl: UInt16, Sendable {
    case streamBegin = 0
    case pingRequest = 6
    case pingResponse = 7
}

/// A command: its name, a number that its answer repeats, and what it is about.
/// - Source: Adobe, RTMP 1.0 (2012), §7.1.1 and §7.2.
package struct RTMPCommand: Equatable, Sendable {
    package var name: String
    package var transaction: Double
    /// Of the connection; null for most.
    package var object: AMF0Value
    package var arguments: [AMF0Value]

    package init(
        _ name: String, transaction: Double = 0, object: AMF0Value = .null, _ arguments: [AMF0Value] = []
    ) {
        self.name = name
        self.transaction = transaction
        self.object = object
        self.arguments = arguments
    }

    /// Reads a command's payload.
    package init(parsing payload: Span<UInt8>, isAMF3: Bool = false) throws(WireError) {
        let start = isAMF3 ? 1 : 0
        try payload.require(start)
        let values = try AMF0Value.sequence(parsing: payload.extracting(start..<payload.count))
        guard let name = values.first?.text, values.count >= 2, let transaction = values[1].number else {
            throw .invalid(.rtmpCommand)
        }
        self.init(
            name, transaction: transaction, object: values.count > 2 ? values[2] : .null,
            Array(values.dropFirst(3)))
    }

    /// - Parameter stream: 0 for a command of the connection.
    package func message(on stream: UInt32 = 0) -> RTMPMessage {
        var payload: [UInt8] = []
        AMF0Value.string(name).append(to: &payload)
        AMF0Value.number(transaction).append(to: &payload)
        object.append(to: &payload)
        for argument in arguments { argument.append(to: &payload) }
        return RTMPMessage(.command, stream: stream, payload: payload)
    }
}

extension WireError.Field {
    /// No name, or no number behind it.
    package static var rtmpCommand: Self { .init("rtmp.command") }
}
