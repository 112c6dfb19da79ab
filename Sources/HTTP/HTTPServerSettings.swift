import Base

/// Where a server listens and what it puts up with.
package struct HTTPServerSettings: Sendable {
    /// PEM files for TLS.
    package struct TLSFiles: Sendable, Equatable {
        /// Path of the chain, the server's certificate first.
        package var certificate: String
        /// Path of the private key.
        package var key: String

        package init(certificate: String, key: String) {
            self.certificate = certificate
            self.key = key
        }
    }

    /// Port 0 lets the kernel choose.
    package var address: TransportAddress
    /// False where others take the connections to that address, and hand them over.
    package var listens = true
    /// Plain text when nil.
    package var tls: TLSFiles?

    /// Request line and headers, in bytes; more gets 431, twice as much a closed connection.
    package var maximumHeaderBytes = 16 * 1024
    /// Request body, in bytes; more gets 413.
    package var maximumBodyBytes = 192 * 1024
    /// For a request to arrive, counted from the connection or its previous answer; in whole seconds for the head.
    package var receiveTimeout = Duration.seconds(10)
    /// For a handler to answer, beside what it wants for some requests; then the client gets 503.
    package var handlerTimeout = Duration.seconds(30)
    /// For a client to take its answer.
    package var sendTimeout = Duration.seconds(60)
    /// For an idle connection.
    package var idleTimeout = Duration.seconds(30)

    /// Of all clients; beyond it idle ones are closed for new ones, or nothing is accepted.
    package var maximumConnections = 16_384
    /// From one address, or one /64 for IPv6, whose /56 and /48 have 4 and 16 times as many; loopback is exempt, unless
    /// something forwards to it.
    package var maximumConnectionsPerAddress = 200
    /// In requests a second from one address, or one /64 for IPv6; loopback is exempt.
    ///
    /// More gets 429.
    package var requestRatePerAddress = 50.0
    /// How many requests may come at once before the rate counts.
    package var requestBurstPerAddress = 200.0
    /// Bytes of a body that cost as much as one request more.
    package var bytesPerRequest = 16_384
    /// Proxies that say who asks: then limits count for that address.
    package var trustedProxies = TrustedProxies()
    /// Whether the limits per address count for loopback too; for tests.
    package var limitsLoopback = false

    /// Silence after which a WebSocket is pinged.
    package var webSocketPing = Duration.seconds(5)
    /// Silence after which a WebSocket is given up; longer than `webSocketPing`.
    package var webSocketHangup = Duration.seconds(15)
    /// One incoming WebSocket message, in bytes; more closes with 1009.
    package var maximumMessageBytes = 16 * 1024
    /// Incoming messages nobody has read yet; more closes with 1008.
    package var maximumIncomingMessages = 64
    /// Outgoing bytes not yet sent; what would exceed it is refused.
    package var maximumOutgoingBytes = 256 * 1024

    package init(address: TransportAddress, tls: TLSFiles? = nil) {
        self.address = address
        self.tls = tls
    }
}
