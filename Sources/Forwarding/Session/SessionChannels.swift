import Base
import Peer
import Wire

/// The purposes of one session's data channels.
struct SessionChannels {
    /// Another session's data track, as this session receives it.
    struct Incoming: Hashable {
        /// Nil for messages of the audience, who share one channel.
        let session: SessionID?
        let label: String
    }

    /// Prefix of a data track's channel label.
    static let dataPrefix = "data:"
    /// Maximum number of data tracks that one session may send.
    static let maximumSent = 4
    /// Maximum length of a client's message on its control channel, in bytes.
    static let maximumControlMessage = 16_384
    /// Marks a data track that this client closed, or was too slow for.
    private static let refused = UInt16.max

    /// The SCTP stream of the control channel; nil until the client has opened it.
    var control: UInt16?
    /// Whether a control message was dropped because the client reads too slowly.
    var hasMissed = false
    /// Limits for the client's messages on the control channel, and on its data tracks.
    var controlGate: MessageGate
    var dataGate: MessageGate
    /// Labels of the data tracks that the client sends, by SCTP stream.
    private var sent: [UInt16: String] = [:]
    /// SCTP streams of the data tracks that the client receives, or `refused`.
    var incoming: [Incoming: UInt16] = [:]

    /// - Parameter isOnStage: whether the limits of the stage apply, rather than those of a viewer.
    init(isOnStage: Bool, at now: MonotonicTime) {
        controlGate = MessageGate(.control, at: now)
        dataGate = MessageGate(isOnStage ? .data : .viewerData, at: now)
    }

    /// Registers a data track that the client opened.
    /// - Returns: whether it is allowed: not beyond `maximumSent`, and not twice under one label.
    mutating func sends(_ label: String, on stream: UInt16, at now: MonotonicTime) -> Bool {
        guard sent.count < Self.maximumSent, !sent.values.contains(label) else { return false }
        sent[stream] = label
        return true
    }

    /// The label of a data track that the client sends.
    func label(of stream: UInt16) -> String? { sent[stream] }

    /// How messages of a data track are delivered, as its sender chose.
    func delivery(of label: String, in connection: PeerConnection) -> DataChannelDelivery {
        let stream = sent.first { $0.value == label }?.key
        return stream.flatMap { connection.dataChannel($0)?.delivery } ?? DataChannelDelivery()
    }

    func isRefused(_ stream: UInt16) -> Bool { stream == Self.refused }

    /// Notes that the client closed a channel.
    /// - Returns: the label of the client's data track that ended with it; nil for other channels.
    mutating func closed(_ stream: UInt16) -> String? {
        forgetIncoming(stream)
        return sent.removeValue(forKey: stream)
    }

    /// Marks a received data track as refused, so that it is not opened again.
    mutating func forgetIncoming(_ stream: UInt16) {
        for (key, known) in incoming where known == stream { incoming[key] = Self.refused }
    }

    /// The labels of the client's data tracks, sorted; it has none afterwards.
    mutating func takeLabels() -> [String] {
        defer { sent.removeAll() }
        return sent.values.sorted()
    }
}

/// An event of a data track, on its way to all others who receive it.
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
    /// A message from a viewer; it contains the viewer's identity.
    case said(DataChannelMessage)
    case closed

    /// The message of a speaker or a viewer; nil for an event without one.
    var carried: DataChannelMessage? {
        switch self {
        case .message(let message), .said(let message): message
        case .opened, .closed: nil
        }
    }
}
