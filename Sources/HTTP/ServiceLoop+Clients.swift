import Base
import CWebSockets
import Glibc

/// Who asks, whom it counts for, and who has to go when all places are taken.
extension ServiceLoop {
    /// Who sent a request.
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

    /// Whether somebody else may have asked than who has the connection.
    private func isForwarded(_ head: RequestHead, on connection: Connection) -> Bool {
        connection.isProxy || head.headers.isForwarded || head.isOldHTTP
    }

    /// Lets a request count for who sent it; behind a proxy as one of its connections too, while it lasts.
    /// - Returns: nil when it may go on, else the seconds to wait.
    func count(_ client: AddressLimits.Client, on connection: Connection) -> Int? {
        if let seconds = limits.request(client, at: now) { return seconds }
        guard connection.isProxy else { return nil }
        release(connection)
        guard limits.connect(client, at: now) else { return 1 }
        connection.counted = client
        return nil
    }

    /// What somebody is told who has to wait.
    /// - Parameter seconds: for how long.
    func rateLimit(wait seconds: Int) -> RateLimit {
        let quota = RateLimit.Quota(
            burst: settings.requestBurstPerAddress, rate: settings.requestRatePerAddress)
        return RateLimit("too-many-requests", wait: seconds, quota: quota)
    }

    /// Counts a connection for nobody any more.
    func release(_ connection: Connection) {
        guard let client = connection.counted else { return }
        connection.counted = nil
        limits.disconnect(client)
    }

    /// A request as handlers see it.
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

    /// Says once what is wrong with a proxy.
    private func warnOfProxy(_ event: String, _ remedy: String) {
        guard !hasWarnedOfProxy else { return }
        hasWarnedOfProxy = true
        log.warning(event, ["why-it-matters": "all who come by it count as one address; \(remedy)"])
    }

    /// Closes connections that do nothing, of the network that has the most, when no more may be accepted.
    ///
    /// Looks at all of them, so not often.
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
        let eldest = (fullest?.value ?? []).sorted { ($0.deadline ?? .max) < ($1.deadline ?? .max) }
        for connection in eldest.prefix(Self.closedForRoom) {
            connection.isClosing = true
            counters.add(1, counters.displacedConnections)
            unsafe cws_kill(connection.wsi.pointer)
        }
    }

    private var isSomebodyWaiting: Bool {
        guard adoptions.isEmpty else { return true }
        guard let descriptor = listenDescriptor else { return false }
        var waiting = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        return unsafe poll(&waiting, 1, 0) == 1
    }

    private static let closedForRoom = 64
}
