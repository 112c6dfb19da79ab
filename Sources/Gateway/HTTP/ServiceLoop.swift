import Base
import CWebSockets
import Glibc

/// The service thread: a libuv loop with one libwebsockets context, which own all HTTP connections.
///
/// Everything here runs on that one thread; other threads reach it by the `ServiceLink`. Handlers run elsewhere, as
/// tasks.
final class ServiceLoop {
    let settings: HTTPServerSettings
    let handler: any HTTPHandler
    let link: ServiceLink
    let counters: HTTPCounters
    let log: Log
    let listener: ListenSocket

    var context: OpaquePointer?
    private var host: OpaquePointer?
    var connections: [OpaquePointer: Connection] = [:]
    var exchanges: [UInt64: Exchange] = [:]
    var exchangeOf: [OpaquePointer: Exchange] = [:]
    var sockets: [UInt64: SocketSession] = [:]
    var socketOf: [OpaquePointer: SocketSession] = [:]
    /// WebSockets accepted by the handler, between libwebsockets' two questions.
    var upgrades: [OpaquePointer: Upgrade] = [:]
    var limits: AddressLimits
    var lastID: UInt64 = 0
    /// When a graceful stop ends, in the loop's milliseconds.
    var stopDeadline: UInt64?
    /// Bytes for `lws_write`, after the room it wants in front.
    let scratch: UnsafeMutableRawBufferPointer
    let prefix = Int(cws_prefix())

    private let loop = UnsafeMutablePointer<uv_loop_t>.allocate(capacity: 1)
    private let wakeup = UnsafeMutablePointer<uv_async_t>.allocate(capacity: 1)
    private let sweep = UnsafeMutablePointer<uv_timer_t>.allocate(capacity: 1)
    private let accepting = UnsafeMutablePointer<uv_poll_t>.allocate(capacity: 1)
    private let heartbeat = UnsafeMutablePointer<lws_retry_bo_t>.allocate(capacity: 1)
    /// libwebsockets sets this to null when the context is gone.
    private let contextSlot = UnsafeMutablePointer<OpaquePointer?>.allocate(capacity: 1)
    private let alpn = strdup("h2,http/1.1")
    private var isAccepting = false
    private var hasLeft = false
    private var nextForgetting: UInt64 = 0

    /// How often time-outs are looked at, in milliseconds.
    private static let sweepInterval: UInt64 = 250
    /// Written at once; also what a response's first packet burst may hold.
    static let chunkLength = 32 * 1024

    init(
        settings: HTTPServerSettings, listener: consuming ListenSocket, handler: any HTTPHandler,
        link: ServiceLink,
        counters: HTTPCounters, log: Log
    ) {
        self.settings = settings
        self.listener = listener
        self.handler = handler
        self.link = link
        self.counters = counters
        self.log = log
        limits = AddressLimits(settings)
        scratch = .allocate(byteCount: prefix + 2 * Self.chunkLength, alignment: 16)
        contextSlot.initialize(to: nil)
    }

    deinit {
        loop.deallocate()
        wakeup.deallocate()
        sweep.deallocate()
        accepting.deallocate()
        heartbeat.deallocate()
        contextSlot.deallocate()
        scratch.deallocate()
        free(alpn)
    }

    /// Milliseconds on the loop's own clock.
    var now: UInt64 { uv_now(loop) }

    func nextID() -> UInt64 {
        lastID += 1
        return lastID
    }

    // MARK: Life

    func start() throws(HTTPServerError) {
        if let complaint = cws_load_event_plugin() {
            throw .missingEventPlugin(detail: String(cString: complaint))
        }
        uv_loop_init(loop)
        let this = Unmanaged.passUnretained(self).toOpaque()
        uv_async_init(loop, wakeup) { ServiceLoop.of($0?.pointee.data)?.drainLink() }
        wakeup.pointee.data = this
        uv_timer_init(loop, sweep)
        sweep.pointee.data = this
        uv_timer_start(
            sweep, { ServiceLoop.of($0?.pointee.data)?.enforceDeadlines() }, Self.sweepInterval,
            Self.sweepInterval)
        uv_poll_init(loop, accepting, listener.descriptor)
        accepting.pointee.data = this

        do {
            try createContext(user: this)
        } catch {
            shutDown()
            throw error
        }
        resumeAccepting()
        link.open(wakeup)
    }

    /// Returns after `stop`.
    func run() {
        uv_run(loop, UV_RUN_DEFAULT)
        shutDown()
        for exchange in exchanges.values { cancelHandler(of: exchange) }
        exchanges.removeAll()
        exchangeOf.removeAll()
    }

    /// Closes everything and lets the loop see to it.
    private func shutDown() {
        hasLeft = true
        link.close()
        // With a loop that is not its own libwebsockets must be asked twice: first to close everything, then, when
        // the loop has done so, to free what is left.
        cws_begin_destroy(context, loop)
        uv_close(UnsafeMutableRawPointer(wakeup).assumingMemoryBound(to: uv_handle_t.self), nil)
        uv_close(UnsafeMutableRawPointer(sweep).assumingMemoryBound(to: uv_handle_t.self), nil)
        uv_close(UnsafeMutableRawPointer(accepting).assumingMemoryBound(to: uv_handle_t.self), nil)
        uv_run(loop, UV_RUN_DEFAULT)
        lws_context_destroy(contextSlot.pointee)
        uv_run(loop, UV_RUN_DEFAULT)
        context = nil
        if uv_loop_close(loop) != 0 { log.error("loop-not-empty") }
    }

    private func createContext(user: UnsafeMutableRawPointer) throws(HTTPServerError) {
        heartbeat.initialize(to: lws_retry_bo_t())
        heartbeat.pointee.secs_since_valid_ping = UInt16(clamping: settings.webSocketPing.components.seconds)
        heartbeat.pointee.secs_since_valid_hangup = UInt16(
            clamping: settings.webSocketHangup.components.seconds)
        var wanted = cws_settings()
        wanted.loop = loop
        wanted.callback = serviceCallback
        wanted.user = user
        wanted.alpn = UnsafePointer(alpn)
        // What is a little too large still reaches us, and gets its 431.
        wanted.header_bytes = UInt32(clamping: 2 * settings.maximumHeaderBytes)
        wanted.header_seconds = UInt32(clamping: max(1, settings.receiveTimeout.components.seconds))
        wanted.idle_seconds = UInt32(clamping: max(1, settings.idleTimeout.components.seconds))
        wanted.heartbeat = UnsafePointer(heartbeat)
        wanted.context = contextSlot
        let (created, complaints) = LibraryComplaints.collect {
            guard let tls = settings.tls else { return cws_create(&wanted, &host) }
            return tls.certificate.withCString { certificate in
                tls.key.withCString { key in
                    wanted.certificate_path = certificate
                    wanted.key_path = key
                    return cws_create(&wanted, &host)
                }
            }
        }
        context = created
        contextSlot.pointee = created
        guard created == nil || host == nil else { return }
        let detail = complaints.first ?? "no reason given"
        guard let tls = settings.tls, created != nil else { throw .libraryFailed(detail: detail) }
        throw .badCertificate(certificate: tls.certificate, key: tls.key, detail: detail)
    }

    // MARK: Accepting

    private func resumeAccepting() {
        guard !isAccepting, stopDeadline == nil else { return }
        isAccepting = true
        uv_poll_start(accepting, CInt(UV_READABLE.rawValue)) { handle, _, _ in
            ServiceLoop.of(handle?.pointee.data)?.acceptConnections()
        }
    }

    private func pauseAccepting() {
        guard isAccepting else { return }
        isAccepting = false
        uv_poll_stop(accepting)
    }

    private func acceptConnections() {
        // A few at a time, so that those already there get their turn.
        for _ in 0..<64 {
            guard connections.count < settings.maximumConnections else { return pauseAccepting() }
            switch listener.accept() {
            case .nothing: return
            case .exhausted:
                log.warning("accept-exhausted", ["connections": connections.count])
                return pauseAccepting()
            case .connection(let descriptor, let address): admit(descriptor, address)
            }
        }
    }

    private func admit(_ descriptor: CInt, _ address: TransportAddress) {
        guard limits.connect(address.ip, at: now) else {
            counters.add(1, counters.refusedConnections)
            log.debug("connection-refused", ["address": address, "reason": "too-many"])
            close(descriptor)
            return
        }
        var on: CInt = 1
        setsockopt(descriptor, CInt(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<CInt>.size))
        // Room for a whole answer: while one waits for room, libwebsockets cannot pause reading.
        var room: CInt = 256 * 1024
        setsockopt(descriptor, SOL_SOCKET, SO_SNDBUF, &room, socklen_t(MemoryLayout<CInt>.size))
        guard let wsi = cws_adopt(host, descriptor, settings.tls == nil ? 0 : 1) else {
            limits.disconnect(address.ip)
            return
        }
        counters.add(1, counters.connections)
        connections[wsi] = Connection(
            wsi: wsi, address: address, deadline: now + settings.receiveTimeout.milliseconds)
    }

    // MARK: What the loop calls

    private static func of(_ pointer: UnsafeMutableRawPointer?) -> ServiceLoop? {
        pointer.map { Unmanaged<ServiceLoop>.fromOpaque($0).takeUnretainedValue() }
    }

    private func drainLink() {
        for command in link.take() {
            switch command {
            case .answer(let id, let response): answer(id, response)
            case .serveSocket(let id):
                if let session = sockets[id] { lws_callback_on_writable(session.wsi) }
            case .stop(let grace): beginStop(grace)
            }
        }
    }

    private func enforceDeadlines() {
        let now = now
        for exchange in exchanges.values where exchange.deadline <= now { giveUp(exchange) }
        for connection in connections.values {
            guard let deadline = connection.deadline, deadline <= now else { continue }
            connection.deadline = nil
            cws_kill(connection.wsi)
        }
        if now >= nextForgetting {
            nextForgetting = now + 5_000
            limits.forgetIdle(at: now)
        }
        resumeAccepting()
        endStopIfDone()
    }

    // MARK: Stopping

    private func beginStop(_ grace: Duration) {
        guard stopDeadline == nil else { return }
        stopDeadline = now + grace.milliseconds
        pauseAccepting()
        for session in sockets.values { session.connection.close(.goingAway) }
        for connection in connections.values
        where connection.activeExchanges == 0 && socketOf[connection.wsi] == nil {
            cws_kill(connection.wsi)
        }
        endStopIfDone()
    }

    func endStopIfDone() {
        // Stopping the loop again, while it closes its handles, would leave some of them open.
        guard let stopDeadline, !hasLeft else { return }
        guard exchanges.isEmpty && sockets.isEmpty || stopDeadline <= now else { return }
        uv_stop(loop)
    }
}

extension Duration {
    /// Whole milliseconds, never negative.
    var milliseconds: UInt64 { UInt64(max(0, wholeNanoseconds / 1_000_000)) }
}
