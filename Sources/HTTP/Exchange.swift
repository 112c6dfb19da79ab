import Base
import CWebSockets

/// State of one TCP connection; belongs to the service thread.
final class Connection {
    let wsi: LibraryConnection
    let address: TransportAddress
    /// Whether the peer is a trusted proxy.
    let isProxy: Bool
    /// The client that the connection is counted for; nil for a proxy's connection without a request.
    var counted: AddressLimits.Client?
    /// Whether a request is under way; busy connections are not closed to make room.
    var isBusy = false
    /// Whether the connection has carried a request before the present one.
    var isReused = false
    /// When to close it, in milliseconds of the loop's clock; nil while an exchange or the heartbeats watch over it.
    var deadline: UInt64?
    /// Set to close the connection at the next writable event.
    var isClosing = false
    /// Set once bytes that are no HTTP have been answered, so that it happens once.
    var isRefused = false

    init(wsi: LibraryConnection, address: TransportAddress, isProxy: Bool, deadline: UInt64) {
        self.isProxy = isProxy
        self.wsi = wsi
        self.address = address
        self.deadline = deadline
    }
}

/// One request and its response; belongs to the service thread.
final class Exchange {
    /// A request passes through these in order; `draining` and `streaming` occur in some cases only.
    enum Phase {
        /// The body is arriving.
        case receiving
        /// A handler is working; the task is cancelled if the client disconnects.
        case handling(Task<Void, Never>)
        /// The response is being sent, from bytes or a file.
        case sending(Sending)
        /// The response is being sent while its body is produced.
        case streaming(Streaming)
        /// Answered before the body was complete. The rest is read and dropped, because closing with unread bytes
        /// resets the connection, and the client could lose the response (RFC 9112 §9.6).
        case draining
    }

    /// Progress of a response from bytes or a file.
    struct Sending {
        let response: HTTPResponse
        /// Bytes of the body written so far.
        var offset = 0
        var hasSentHead = false
        /// Bytes of a file that were read but not written yet.
        var piece: [UInt8] = []
        /// Whether the next piece of a file is being read.
        var isReading = false
    }

    /// A response whose body is being produced.
    struct Streaming {
        let stream: HTTPStream
        let isChunked: Bool
        /// Runs the closure of `HTTPStream`.
        let producer: Task<Void, Never>
    }

    /// Unique within the server; by it other threads refer to the exchange.
    let id: UInt64
    let wsi: LibraryConnection
    let connection: Connection
    /// When the head had arrived, in milliseconds of the loop's clock.
    let startedAt: UInt64
    /// Nil if the head itself was refused.
    let head: RequestHead?
    /// The client that limits apply to.
    var client: AddressLimits.Client
    var phase = Phase.receiving
    var body: [UInt8] = []
    /// Decoder of a chunked body; nil for other framing.
    var chunks: ChunkedBody?
    /// Bytes of the body that are counted in the loop's `bodyBytes`.
    var countedBytes = 0
    /// Whether a part of the body is still missing.
    var isBodyPending: Bool
    /// When the present phase times out, in milliseconds of the loop's clock.
    var deadline: UInt64
    /// Whether the response announces `Connection: close`.
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

    var isReceiving: Bool {
        if case .receiving = phase { return true }
        return false
    }

    var isWaitingForHandler: Bool {
        if case .handling = phase { return true }
        return false
    }
}
