import Base
import CWebSockets

/// One TCP connection, seen from the service thread.
final class Connection {
    let wsi: LibraryConnection
    let address: TransportAddress
    /// Whether the other end is a proxy that says who asks.
    let isProxy: Bool
    /// Whom it counts for; nil for a proxy that passes nothing on at the moment.
    var counted: AddressLimits.Client?
    /// Whether a request is under way.
    var isBusy = false
    /// Whether a request has come before the one that is looked at.
    var isReused = false
    /// When to give it up, in the loop's milliseconds; nil while an exchange or a WebSocket decides.
    var deadline: UInt64?
    /// Closed at the next chance to write.
    var isClosing = false
    /// It spoke something else than HTTP and has been told so.
    var isRefused = false

    init(wsi: LibraryConnection, address: TransportAddress, isProxy: Bool, deadline: UInt64) {
        self.isProxy = isProxy
        self.wsi = wsi
        self.address = address
        self.deadline = deadline
    }
}

/// One request and its answer, seen from the service thread.
final class Exchange {
    enum Phase {
        /// The body is on its way.
        case receiving
        /// A handler is at work.
        case handling(Task<Void, Never>)
        /// The answer is on its way.
        case sending(Sending)
        /// The answer is on its way, and its body is still being made.
        case streaming(Streaming)
        /// Answered before all of the body came: the rest is read and dropped, because closing at once could make
        /// the client lose the answer.
        case draining
    }

    struct Sending {
        let response: HTTPResponse
        /// Bytes of the body that were handed over.
        var offset = 0
        var hasSentHead = false
        /// Of a file: bytes that were read and not handed over, and whether more are being read.
        var piece: [UInt8] = []
        var isReading = false
    }

    struct Streaming {
        let stream: HTTPStream
        let isChunked: Bool
        let producer: Task<Void, Never>
    }

    let id: UInt64
    let wsi: LibraryConnection
    let connection: Connection
    let startedAt: UInt64
    /// nil when the head itself was refused.
    let head: RequestHead?
    /// Who sent it.
    var client: AddressLimits.Client
    var phase = Phase.receiving
    var body: [UInt8] = []
    var chunks: ChunkedBody?
    /// Not all of the body has come.
    var isBodyPending: Bool
    /// When to give up the present phase, in the loop's milliseconds.
    var deadline: UInt64
    var closesConnection = false

    init(
        id: UInt64, wsi: LibraryConnection, connection: Connection, head: RequestHead?, startedAt: UInt64,
        deadline: UInt64
    ) {
        self.id = id
        self.wsi = wsi
        self.connection = connection
        self.head = head
        client = AddressLimits.Client(ip: connection.address.ip)
        self.startedAt = startedAt
        self.deadline = deadline
        isBodyPending = head.map { $0.framing != .none } ?? false
    }

    var isWaitingForHandler: Bool {
        if case .handling = phase { return true }
        return false
    }
}
