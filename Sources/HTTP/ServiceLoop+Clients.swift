import Base
import CWebSockets
import Glibc

/// The client behind a request, its limits, and which connections to close when all places are taken.
extension ServiceLoop {
    /// The client that sent a request, to which limits apply.
    ///
    /// On a trusted proxy's connection it is the address in `X-Forwarded-For`. On any other connection the field proves
    /// nothing and only marks the request as forwarded.
    func client(of connection: Connection, _ head: RequestHead) -> AddressLimits.Client {
        let isForwarded = isForwarded(head, on: connection)
        guard connection.isProxy else {
            if isForwarded, connection.address.ip.isLoopback {
                warnOfProxy("proxy-not-trusted", "say --trusted-proxy and its address")
            }
            return AddressLimits.Client(ip: connection.address.ip, isForwarded: isForwarded)
        }
        let field = head.headers["x-forwarded-for"]
        if field == nil { warnOfProxy("proxy-names-nobody", "have it add X-Forwarded-For") }
        let ip = settings.trustedProxies.client(of: connection.address.ip, forwardedFor: field)
        return AddressLimits.Client(ip: ip, isForwarded: isForwarded)
    }

    /// Whether the client may be another host than the connection's peer.
    ///
    /// HTTP/1.0 counts as a sign of a proxy: nginx uses it by default, without adding any field.
    private func isForwarded(_ head: RequestHead, on connection: Connection) -> Bool {
        connection.isProxy || head.headers.isForwarded || head.isOldHTTP
    }

    /// Counts a request against its client's limits; behind a proxy also as one of the client's connections while it
    /// lasts.
    /// - Returns: nil if the request may proceed, otherwise the seconds to wait.
    func count(_ client: AddressLimits.Client, on connection: Connection) -> Int? {
        if let seconds = limits.request(client, at: now) { return seconds }
        guard connection.isProxy else { return nil }
        // The connection may still count for the client of the request before.
        release(connection)
        guard limits.connect(client, at: now) else { return 1 }
        connection.counted = client
        return nil
    }

    /// The header fields of a 429 for a client over its request rate.
    /// - Parameter seconds: time to wait.
    func rateLimit(wait seconds: Int) -> RateLimit {
        let quota = RateLimit.Quota(
            burst: settings.requestBurstPerAddress, rate: settings.requestRatePerAddress)
        return RateLimit("too-many-requests", wait: seconds, quota: quota)
    }

    /// Stops counting a connection for any client.
    func release(_ connection: Connection) {
        guard let client = connection.counted else { return }
        connection.counted = nil
        limits.disconnect(client)
    }

    /// Builds the request that handlers receive; a trusted proxy's fields replace address, scheme and host.
    func request(
        _ head: RequestHead, on connection: Connection, from client: AddressLimits.Client, body: [UInt8] = []
    ) -> HTTPRequest {
        var request = HTTPRequest(
            method: head.method, path: head.path, query: head.query, headers: head.headers, body: body,
            remoteAddress: connection.address, isSecure: settings.tls != nil)
        request.isByProxy = connection.isProxy || head.isOldHTTP
        guard connection.isProxy else { return request }
        request.clientAddress = client.ip
        if head.headers["x-forwarded-proto"]?.lowercased() == "https" { request.isSecure = true }
        if let host = head.headers["x-forwarded-host"] { request.publicHost = host }
        return request
    }

    /// Logs once per run how to configure a proxy.
    private func warnOfProxy(_ event: String, _ remedy: String) {
        guard !hasWarnedOfProxy else { return }
        hasWarnedOfProxy = true
        log.warning(event, ["why-it-matters": "all who come by it count as one address; \(remedy)"])
    }

    /// Closes up to `closedForRoom` idle connections of the network with the most connections.
    ///
    /// Runs only when all places are taken and a new connection waits. It visits every connection, so at most every
    /// 200 ms.
    func makeRoom() {
        guard now >= nextRoomMaking, isSomebodyWaiting else { return }
        nextRoomMaking = now + 200
        var counts: [AddressLimits.Network: Int] = [:]
        for connection in connections.values {
            counts[AddressLimits.Network(widestOf: connection.address.ip), default: 0] += 1
        }
        let idle = connections.values.filter {
            !$0.isBusy && !$0.isClosing && socketOf[$0.wsi] == nil && upgrades[$0.wsi] == nil
        }
        let byNetwork = Dictionary(grouping: idle) { AddressLimits.Network(widestOf: $0.address.ip) }
        let fullest = byNetwork.max { (counts[$0.key] ?? 0) < (counts[$1.key] ?? 0) }
        // Those closest to their own timeout go first.
        let eldest = (fullest?.value ?? []).sorted { ($0.deadline ?? .max) < ($1.deadline ?? .max) }
        for connection in eldest.prefix(Self.closedForRoom) {
            connection.isClosing = true
            counters.add(1, counters.displacedConnections)
            unsafe cws_kill(connection.wsi.pointer)
        }
    }

    /// Whether a connection waits in the kernel's queue or among the handed-over ones.
    private var isSomebodyWaiting: Bool {
        guard adoptions.isEmpty else { return true }
        guard let descriptor = listenDescriptor else { return false }
        var waiting = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        return unsafe poll(&waiting, 1, 0) == 1
    }

    /// As many as `acceptConnections` takes per turn.
    private static let closedForRoom = 64
}
