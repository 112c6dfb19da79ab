import Crypto
import SCTP
import Wire

/// Which channels an association has, and what may be said on them.
///
/// Channel 0 is there from the beginning without being opened (`negotiated: true`, label `control`). A client that
/// opens stream 0 instead has not agreed to that, and gets the channel that it asks for.
/// - Source: RFC 8831 §6, RFC 8832 §6.
package struct DataChannelTable {
    /// What the endpoint has to do with its association, or to tell.
    package enum Effect: Equatable, Sendable {
        case send(SCTPMessage)
        /// Close our direction of the stream.
        case reset(UInt16)
        case tell(DataChannelEvent)
    }

    private enum State: Equatable {
        /// By us; the peer has not acknowledged.
        case opening
        case open
        /// Which directions are closed; both, and the stream is free again.
        case closing(ours: Bool, theirs: Bool)
    }

    private struct Channel {
        var open: DataChannelOpen
        var state: State
        /// Of a message whose sender cut it in pieces.
        var pieces: [UInt8] = []
        /// Whether something was received on it.
        var isUsed = false

        var isClosing: Bool { if case .closing = state { true } else { false } }
    }

    /// Negotiated by number, so that it is there without DCEP (RFC 8831 §6.4).
    package static let controlStream: UInt16 = 0
    /// The label that clients give the channel.
    package static let controlLabel = "control"
    /// Channels that are not closing.
    package static let maximumChannels = 64
    /// Label and subprotocol together, in bytes.
    static let maximumNames = 256
    /// All pieces of messages that are not yet whole, in bytes.
    static let maximumPieces = DataChannelPlan.maximumReceived

    private let role: DTLSRole
    private var channels: [UInt16: Channel]
    private var pieceBytes = 0
    private var isEnded = false
    /// Messages that belong to no channel or make no sense.
    package private(set) var undecodable: UInt64 = 0

    package init(role: DTLSRole) {
        self.role = role
        channels = [
            Self.controlStream: Channel(open: DataChannelOpen(label: Self.controlLabel), state: .open)
        ]
    }

    /// How many channels can be used.
    package var count: Int { channels.values.count { !$0.isClosing } }

    /// What a channel that can be used is called; nil if there is none.
    package func description(of stream: UInt16) -> DataChannelOpen? {
        guard let channel = channels[stream], !channel.isClosing else { return nil }
        return channel.open
    }

    // MARK: From here

    /// Opens a channel.
    /// - Parameter streams: how many the association has.
    package mutating func open(
        _ open: DataChannelOpen, streams: UInt16
    ) throws(DataChannelError) -> (stream: UInt16, effects: [Effect]) {
        guard !isEnded, count < Self.maximumChannels else { throw .tooManyChannels }
        let first: UInt16 = role == .client ? 2 : 1
        guard let free = stride(from: first, to: streams, by: 2).first(where: { channels[$0] == nil }) else {
            throw .tooManyChannels
        }
        channels[free] = Channel(open: open, state: .opening)
        return (free, [.send(Self.control(.open(open), on: free))])
    }

    /// The message as it has to be sent; ordered until the peer has acknowledged the channel (RFC 8832 §6).
    package func encode(
        _ message: DataChannelMessage, on stream: UInt16
    ) throws(DataChannelError) -> SCTPMessage {
        guard let channel = channels[stream], !channel.isClosing else { throw .noChannel }
        var delivery = channel.open.delivery
        if channel.state == .opening { delivery.isOrdered = true }
        let (payload, bytes) = message.encoded
        return SCTPMessage(stream: stream, payload: payload.rawValue, delivery: delivery, bytes: bytes)
    }

    /// Closes a channel; the peer's messages on it are dropped from now on.
    package mutating func close(_ stream: UInt16) -> [Effect] {
        guard let channel = channels[stream], !channel.isClosing else { return [] }
        beginClosing(stream, theirs: false)
        return [.reset(stream)]
    }

    // MARK: From the association

    /// Takes what the association says: messages, resets, the end.
    package mutating func receive(_ event: SCTPAssociation.Event) -> [Effect] {
        guard !isEnded else { return [] }
        switch event {
        case .established:
            return description(of: Self.controlStream).map { [.tell(.opened(Self.controlStream, $0))] } ?? []
        case .message(let message): return receive(message)
        case .tooLong(let stream): return refuse(stream)
        case .incomingReset(let streams):
            let all = streams.isEmpty ? channels.keys.sorted() : streams
            return all.flatMap { peerClosed($0) }
        case .outgoingReset(let stream):
            guard case .closing(_, let theirs)? = channels[stream]?.state else { return [] }
            channels[stream]?.state = .closing(ours: true, theirs: theirs)
            if theirs { channels[stream] = nil }
            return []
        case .ended:
            isEnded = true
            let open = channels.filter { !$0.value.isClosing }.keys.sorted()
            channels.removeAll()
            return open.map { .tell(.closed($0)) }
        }
    }

    private mutating func receive(_ message: SCTPMessage) -> [Effect] {
        guard let payload = DataChannelPayload(rawValue: message.payload) else { return ignore() }
        guard payload != .control else { return receiveControl(message) }
        guard let channel = channels[message.stream], !channel.isClosing else { return ignore() }
        channels[message.stream]?.isUsed = true
        // Whoever uses a channel knows of it, even if the acknowledgement comes later.
        if channel.state == .opening { channels[message.stream]?.state = .open }
        switch payload {
        case .control: return []
        case .emptyString: return deliver(.string([]), on: message.stream)
        case .emptyBinary: return deliver(.binary([]), on: message.stream)
        case .string: return deliver(.string(whole(message)), on: message.stream)
        case .binary: return deliver(.binary(whole(message)), on: message.stream)
        case .stringPiece, .binaryPiece:
            guard pieceBytes + message.bytes.count <= Self.maximumPieces else {
                return refuse(message.stream)
            }
            pieceBytes += message.bytes.count
            channels[message.stream]?.pieces += message.bytes
            return []
        }
    }

    /// The message with the pieces that came before it.
    private mutating func whole(_ message: SCTPMessage) -> [UInt8] {
        guard let pieces = channels[message.stream]?.pieces, !pieces.isEmpty else { return message.bytes }
        dropPieces(of: message.stream)
        return pieces + message.bytes
    }

    private mutating func deliver(_ message: DataChannelMessage, on stream: UInt16) -> [Effect] {
        guard message.bytes.count <= DataChannelPlan.maximumReceived else { return refuse(stream) }
        return [.tell(.message(stream, message))]
    }

    private mutating func receiveControl(_ message: SCTPMessage) -> [Effect] {
        guard let control = try? DataChannelControl(parsing: message.bytes.span) else { return ignore() }
        switch control {
        case .acknowledge:
            guard channels[message.stream]?.state == .opening else { return ignore() }
            channels[message.stream]?.state = .open
            return []
        case .open(let open): return receive(open, on: message.stream)
        }
    }

    private mutating func receive(_ open: DataChannelOpen, on stream: UInt16) -> [Effect] {
        let isFree = channels[stream] == nil
        let replacesControl = stream == Self.controlStream && channels[stream]?.isUsed == false
        let isTheirs = (stream % 2 == 0) == (role == .server)
        guard isFree || replacesControl, isTheirs, count < Self.maximumChannels,
            open.label.utf8.count + open.subprotocol.utf8.count <= Self.maximumNames
        else { return refuse(stream) }
        channels[stream] = Channel(open: open, state: .open, isUsed: true)
        return [.send(Self.control(.acknowledge, on: stream)), .tell(.opened(stream, open))]
    }

    private mutating func peerClosed(_ stream: UInt16) -> [Effect] {
        switch channels[stream]?.state {
        case nil: return []
        case .closing(true, _): channels[stream] = nil
        case .closing(false, _): channels[stream]?.state = .closing(ours: false, theirs: true)
        case .opening, .open:
            beginClosing(stream, theirs: true)
            return [.reset(stream), .tell(.closed(stream))]
        }
        return []
    }

    /// Closes a channel on which the peer broke a rule, or one that it may not open.
    private mutating func refuse(_ stream: UInt16) -> [Effect] {
        undecodable &+= 1
        let isOpen = description(of: stream) != nil
        guard isOpen || channels[stream] == nil else { return [] }
        if !isOpen { channels[stream] = Channel(open: DataChannelOpen(label: ""), state: .open) }
        beginClosing(stream, theirs: false)
        return isOpen ? [.reset(stream), .tell(.closed(stream))] : [.reset(stream)]
    }

    private mutating func ignore() -> [Effect] {
        undecodable &+= 1
        return []
    }

    private mutating func beginClosing(_ stream: UInt16, theirs: Bool) {
        dropPieces(of: stream)
        channels[stream]?.state = .closing(ours: false, theirs: theirs)
    }

    private mutating func dropPieces(of stream: UInt16) {
        pieceBytes -= channels[stream]?.pieces.count ?? 0
        channels[stream]?.pieces = []
    }

    private static func control(_ control: DataChannelControl, on stream: UInt16) -> SCTPMessage {
        SCTPMessage(stream: stream, payload: DataChannelPayload.control.rawValue, bytes: control.bytes)
    }
}
