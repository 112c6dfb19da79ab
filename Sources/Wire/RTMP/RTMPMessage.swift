/// A complete RTMP message.
/// - Source: Adobe, RTMP 1.0 (2012), §5.3.1 and §6.1.1.
package struct RTMPMessage: Equatable, Sendable {
    /// The type of the payload.
    package struct Kind: Equatable, Sendable {
        /// The message type on the wire.
        package let rawValue: UInt8

        package init(rawValue: UInt8) {
            self.rawValue = rawValue
        }

        /// Sets the size of the sender's chunks; `RTMPChunkReader` handles it.
        package static let setChunkSize = Kind(rawValue: 1)
        /// Discards the incomplete message of a chunk stream; `RTMPChunkReader` handles it.
        package static let abort = Kind(rawValue: 2)
        /// The number of bytes received so far.
        package static let acknowledgement = Kind(rawValue: 3)
        /// An event; see `RTMPUserControl`.
        package static let userControl = Kind(rawValue: 4)
        /// How many bytes the sender sends between two acknowledgements.
        package static let windowSize = Kind(rawValue: 5)
        /// Limits how many bytes the receiver may send without acknowledgement.
        package static let peerBandwidth = Kind(rawValue: 6)
        package static let audio = Kind(rawValue: 8)
        package static let video = Kind(rawValue: 9)
        /// Data and commands in AMF 3; the payload is AMF 0 after a zero byte.
        package static let dataAMF3 = Kind(rawValue: 15)
        package static let commandAMF3 = Kind(rawValue: 17)
        /// Metadata of the stream, in AMF 0.
        package static let data = Kind(rawValue: 18)
        /// A command in AMF 0; see `RTMPCommand`.
        package static let command = Kind(rawValue: 20)
    }

    /// Determines how the payload is read.
    package var kind: Kind
    /// In milliseconds, modulo 2^32.
    package var timestamp: UInt32
    /// The message stream: 0 for messages about the connection; ours is 1.
    package var stream: UInt32
    /// Without chunk headers.
    package var payload: [UInt8]

    package init(_ kind: Kind, timestamp: UInt32 = 0, stream: UInt32 = 0, payload: [UInt8]) {
        self.kind = kind
        self.timestamp = timestamp
        self.stream = stream
        self.payload = payload
    }

    /// A message whose payload is a 32-bit number.
    package init(_ kind: Kind, number: UInt32) {
        var payload: [UInt8] = []
        payload.append(bigEndian: number)
        self.init(kind, payload: payload)
    }

    /// A user control message about a stream or the connection.
    package init(_ event: RTMPUserControl, value: UInt32) {
        var payload: [UInt8] = []
        payload.append(bigEndian: event.rawValue)
        payload.append(bigEndian: value)
        self.init(.userControl, payload: payload)
    }
}

/// The event of a user control message.
/// - Source: Adobe, RTMP 1.0 (2012), §7.1.7.
package enum RTMPUserControl: UInt16, Sendable {
    case streamBegin = 0
    case pingRequest = 6
    case pingResponse = 7
}

/// A command: its name, a transaction id that its answer repeats, and arguments.
/// - Source: Adobe, RTMP 1.0 (2012), §7.1.1 and §7.2.
package struct RTMPCommand: Equatable, Sendable {
    /// Such as `connect` or `_result`.
    package var name: String
    /// Identifies the answer; 0 if none is expected.
    package var transaction: Double
    /// The command object; null for most commands.
    package var object: AMF0Value
    /// The values after the command object.
    package var arguments: [AMF0Value]

    package init(
        _ name: String, transaction: Double = 0, object: AMF0Value = .null, _ arguments: [AMF0Value] = []
    ) {
        self.name = name
        self.transaction = transaction
        self.object = object
        self.arguments = arguments
    }

    /// Parses a command's payload.
    /// - Throws: `.invalid(.rtmpCommand)` without a name and a transaction id, or an error of AMF 0.
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

    /// Encodes the command.
    /// - Parameter stream: 0 for a command about the connection.
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
    /// No name, or no transaction id after it.
    package static var rtmpCommand: Self { .init("rtmp.command") }
}
