import Base

/// Address, TLS files, limits and timeouts of a server.
package struct HTTPServerSettings: Sendable {
    /// PEM files for TLS.
    package struct TLSFiles: Sendable, Equatable {
        /// Path of the chain, the server's certificate first (RFC 8446 §4.4.2).
        package var certificate: String
        /// Path of the private key, without a pass phrase.
        package var key: String

        package init(certificate: String, key: String) {
            self.certificate = certificate
            self.key = key
        }
    }

    /// Address to listen on; with port 0 the kernel chooses a free port.
    package var address: TransportAddress
    /// False if another component accepts connections for `address` and hands them over by `HTTPServer.adopt`.
    package var listens = true
    /// Certificate and key; nil for plain HTTP.
    package var tls: TLSFiles?

    /// Limit of request line and header fields, in bytes; more gets 431, twice as much a closed connection.
    package var maximumHeaderBytes = 16 * 1024
    /// Limit of a request body, in bytes; more gets 413.
    package var maximumBodyBytes = 192 * 1024
    /// Limit of all bodies together that have not arrived completely, in bytes.
    ///
    /// Beyond it the requests that have been arriving for the longest time get 503: those who send slowly on purpose.
    package var maximumPendingBodyBytes = 64 * 1024 * 1024
    /// Time for a request to arrive, counted from the connection or its previous answer; in whole seconds for the head.
    ///
    /// A body that is late gets 408 (RFC 9110 §15.5.9).
    package var receiveTimeout = Duration.seconds(10)
    /// Time for a handler to answer, plus `HTTPHandler.extraTime`; then the client gets 503.
    package var handlerTimeout = Duration.seconds(30)
    /// Time for a client to read its response; then the connection is closed.
    package var sendTimeout = Duration.seconds(60)
    /// Time for which a connection without a request stays open.
    package var idleTimeout = Duration.seconds(30)

    /// Limit of open connections; at the limit idle ones are closed for new ones, and if none is idle, new ones wait.
    package var maximumConnections = 16_384
    /// Limit of connections from one IPv4 address or one IPv6 /64; its /56 and /48 have 4 and 16 times as many.
    ///
    /// Some hundreds of people may share an office's address, and a browser keeps a WebSocket for each page and opens
    /// six connections to load one. A network larger than a /64 never gets more than half of `maximumConnections`.
    /// Loopback is exempt, unless the request was forwarded.
    package var maximumConnectionsPerAddress = 1_024
    /// Sustained requests per second from one IPv4 address or one IPv6 /64; loopback is exempt.
    ///
    /// More gets 429 (RFC 6585 §4). A page that is opened needs some ten, besides its files.
    package var requestRatePerAddress = 50.0
    /// Size of the token bucket: requests that may arrive in one moment before the rate applies.
    ///
    /// When a stream begins, all who wait for it behind one address join it in the same moment, with two or three
    /// requests each.
    package var requestBurstPerAddress = 600.0
    /// Bytes of a request body that cost as much as one more request.
    package var bytesPerRequest = 16_384
    /// Proxies whose `X-Forwarded-…` fields are believed; limits then apply to the client they name.
    package var trustedProxies = TrustedProxies()
    /// Applies the limits per address to loopback as well; for tests.
    package var limitsLoopback = false

    /// Silence after which a WebSocket is pinged (RFC 6455 §5.5.2).
    package var webSocketPing = Duration.seconds(5)
    /// Silence after which a WebSocket counts as lost and is closed; longer than `webSocketPing`.
    package var webSocketHangup = Duration.seconds(15)
    /// Limit of one incoming WebSocket message, in bytes; a longer one closes the socket with 1009.
    package var maximumMessageBytes = 16 * 1024
    /// Limit of incoming messages that the conversation has not read yet; more close the socket with 1008.
    package var maximumIncomingMessages = 64
    /// Incoming messages of one WebSocket that are accepted at once after a pause; more close the socket with 1008.
    package var messageBurst = 200
    /// Incoming messages of one WebSocket that are accepted a second on average.
    package var messagesPerSecond = 40
    /// Limit of queued outgoing bytes per WebSocket; `send` refuses a message that would exceed it.
    package var maximumOutgoingBytes = 256 * 1024

    package init(address: TransportAddress, tls: TLSFiles? = nil) {
        self.address = address
        self.tls = tls
    }
}
