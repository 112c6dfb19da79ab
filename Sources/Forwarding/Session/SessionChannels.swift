import Base
import Peer
import Wire

/// What the data channels of one session are for.
struct SessionChannels {
    /// A data track of somebody else, as this session gets it.
    struct Incoming: Hashable {
        /// Nil for all of the audience, who share one.
        let session: SessionID?
        let label: String
    }

    static let dataPrefix = "data:"
    /// Data tracks that one session may send.
    static let maximumSent = 4
    /// Longest message of a client on its control channel, in bytes.
    static let maximumControlMessage = 16_384
    /// Stands for a data track that this client closed, or was too slow for.
    private static let refused = UInt16.max

    /// The stream of the control channel, once it can be used.
    var control: UInt16?
    /// Whether a message to the client did not fit, because it reads too slowly.
    var hasMissed = false
    var controlGate: MessageGate
    var dataGate: MessageGate
    /// Data tracks that the client sends: their labels by stream.
    private var sent: [UInt16: String] = [:]
    /// Data tracks of others, by whose they are.
    var incoming: [Incoming: UInt16] = [:]

    /// - Parameter isOnStage: whether it may send as much as speakers do.
    init(isOnStage: Bool, at now: MonotonicTime) {
        controlGate = MessageGate(.control, at: now)
        dataGate = MessageGate(isOnStage ? .data : .viewerData, at: now)
    }

    /// The client opened a data track.
    /// - Returns: whether it may.
    mutating func sends(_ label: String, on stream: UInt16, at now: MonotonicTime) -> Bool {
        guard sent.count < Self.maximumSent, !sent.values.contains(label) else { return false }
        sent[stream] = label
        return true
    }

    func label(of stream: UInt16) -> String? { sent[stream] }

    func delivery(of label: String, in connection: PeerConnection) -> DataChannelDelivery {
        let stream = sent.first { $0.value == label }?.key
        return stream.flatMap { connection.dataChannel($0)?.delivery } ?? DataChannelDelivery()
    }

    func isRefused(_ stream: UInt16) -> Bool { stream == Self.refused }

    /// Notes that the peer closed a channel.
    /// - Returns: the label of the data track that ended with it.
    mutating func closed(_ stream: UInt16) -> String? {
        forgetIncoming(stream)
        return sent.removeValue(forKey: stream)
    }

    /// Somebody's data track is not wanted: it is not opened again.
    mutating func forgetIncoming(_ stream: UInt16) {
        for (key, known) in incoming where known == stream { incoming[key] = Self.refused }
    }

    mutating func takeLabels() -> [String] {
        defer { sent.removeAll() }
        return sent.values.sorted()
    }
}

/// What somebody on a stage, or of its audience, did with a data track, on its way to everybody else.
struct DataTrackItem: Sendable {
    let stage: StreamID
    let sender: ParticipantID
    let session: SessionID
    let label: String
    let delivery: DataChannelDelivery
    let event: DataTrackEvent
}

enum DataTrackEvent: Sendable {
    case opened(DataChannelOpen)
    case message(DataChannelMessage)
    /// By one of the audience, whose name is in it.
    case said(DataChannelMessage)
    case closed
}
