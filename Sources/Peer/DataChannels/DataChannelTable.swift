import Crypto
import SCTP
import Wire

/// The channels of an association, their states, and the messages allowed on them.
///
/// Channel 0 exists from the beginning without being opened (`negotiated: true`, label `control`). A client that
/// opens stream 0 with DCEP instead has not agreed to that, and gets the channel that it requests.
/// - Source: RFC 8831 §6, RFC 8832 §6.
package struct DataChannelTable {
    /// What the endpoint must do with its association, or report.
    package enum Effect: Equatable, Sendable {
        case send(SCTPMessage)
        /// Close our direction of the stream.
        case reset(UInt16)
        case tell(DataChannelEvent)
    }

    private enum State: Equatable {
        /// We opened the channel; the peer has not acknowledged it.
        case opening
        case open
        /// Which directions are reset; once both are, the stream can be reused.
        case closing(ours: Bool, theirs: Bool)
    }

    private struct Channel {
        var open: DataChannelOpen
        var state: State
        /// The parts so far of a message that the sender split.
        var pieces: [UInt8] = []
        /// Whether anything was received on the channel.
        var isUsed = false

        var isClosing: Bool { if case .closing = state { true } else { false } }
    }

    /// Negotiated by number, so that it exists without DCEP (RFC 8831 §6.4).
    package static let controlStream: UInt16 = 0
    /// The label that clients give this channel.
    package static let controlLabel = "control"
    /// Limit of channels that are not closing.
    package static let maximumChannels = 64
    /// Limit for label and subprotocol together, in bytes.
    static let maximumNames = 256
    /// Limit for the parts of all unfinished messages together, in bytes.
    static let maximumPieces = DataChannelPlan.maximumReceived

    private let role: DTLSRole
    private var channels: [UInt16: Channel]
    private var pieceBytes = 0
    private var isEnded = false
    /// Messages without a channel or with invalid content.
    package private(set) var undecodable: UInt64 = 0

    /// - Parameter role: ours; it decides which stream numbers each side may open.
    package init(role: DTLSRole) {
        self.role = role
        channels = [
            Self.controlStream: Channel(open: DataChannelOpen(label: Self.controlLabel), state: .open)
        ]
    }

    /// Number of usable channels.
    package var count: Int { channels.values.count { !$0.isClosing } }

    /// The label, subprotocol and reliability of a usable channel; nil if there is none with this number.
    package func description(of stream: UInt16) -> DataChannelOpen? {
        guard let channel = channels[stream], !channel.isClosing else { return nil }
        return channel.open
    }

    // MARK: From here

    /// Opens a channel.
    ///
    /// The DTLS client uses even stream numbers, the server odd ones, so that both can open channels at the same
    /// time.
    /// - Parameter streams: how many streams the association has.
    /// - Throws: `.tooManyChannels`, also where no stream number is free.
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

    /// Encodes a message for sending; ordered until the peer has acknowledged the channel (RFC 8832 §6).
    package func encode(
        _ message: DataChannelMessage, on stream: UInt16
    ) throws(DataChannelError) -> SCTPMessage {
        guard let channel = channels[stream], !channel.isClosing else { throw .noChannel }
        var delivery = channel.open.delivery
        if channel.state == .opening { delivery.isOrdered = true }
        let (payload, bytes) = message.encoded
        return SCTPMessage(stream: stream, payload: payload.rawValue, delivery: delivery, bytes: bytes)
    }

    /// Closes a channel; messages that arrive on it from now on are dropped.
    package mutating func close(_ stream: UInt16) -> [Effect] {
        guard let channel = channels[stream], !channel.isClosing else { return [] }
        beginClosing(stream, theirs: false)
        return [.reset(stream)]
    }

    // MARK: From the association

    /// Applies an event of the association: a message, a reset, the end.
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
        // A peer that uses a channel knows of it, even if its acknowledgement arrives later.
        if channel.state == .opening { channels[message.stream]?.state = .open }
        switch payload {
        case .control: return []
        // An empty message has one byte, which says nothing; after parts it is a last one without content.
        case .emptyString: return deliver(.string(whole([], on: message.stream)), on: message.stream)
        case .emptyBinary: return deliver(.binary(whole([], on: message.stream)), on: message.stream)
        case .string: return deliver(.string(whole(message.bytes, on: message.stream)), on: message.stream)
        case .binary: return deliver(.binary(whole(message.bytes, on: message.stream)), on: message.stream)
        case .stringPiece, .binaryPiece:
            guard pieceBytes + message.bytes.count <= Self.maximumPieces else {
                return refuse(message.stream)
            }
            pieceBytes += message.bytes.count
            channels[message.stream]?.pieces += message.bytes
            return []
        }
    }

    /// Returns the last part of a message joined with the parts that came before it.
    private mutating func whole(_ last: [UInt8], on stream: UInt16) -> [UInt8] {
        guard let pieces = channels[stream]?.pieces, !pieces.isEmpty else { return last }
        dropPieces(of: stream)
        return pieces + last
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

    /// Handles a peer's DATA_CHANNEL_OPEN, and refuses it for a stream that is taken or not the peer's to open.
    private mutating func receive(_ open: DataChannelOpen, on stream: UInt16) -> [Effect] {
        let known = channels[stream]
        let isFree = known == nil
        // Not while it closes: the peer would take the reset that is under way for the end of the new channel.
        let replacesControl =
            stream == Self.controlStream && known?.isUsed == false && known?.isClosing == false
        let isTheirs = (stream % 2 == 0) == (role == .server)
        guard isFree || replacesControl, isTheirs, count < Self.maximumChannels,
            open.label.utf8.count + open.subprotocol.utf8.count <= Self.maximumNames
        else { return refuse(stream) }
        channels[stream] = Channel(open: open, state: .open, isUsed: true)
        return [.send(Self.control(.acknowledge, on: stream)), .tell(.opened(stream, open))]
    }

    /// Handles the reset of the peer's direction; our direction follows, so that the stream can be reused.
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
    ///
    /// A refused stream occupies an entry until its reset is complete, so that it cannot be opened meanwhile.
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
