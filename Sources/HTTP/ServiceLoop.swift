import Base
import CWebSockets
import Glibc

/// The service thread: a libuv loop with one libwebsockets context, which own all HTTP connections.
///
/// Everything here runs on that one thread; other threads reach it by the `ServiceLink`. Handlers run elsewhere, as
/// tasks.
@safe final class ServiceLoop {
    let settings: HTTPServerSettings
    let handler: any HTTPHandler
    let link: ServiceLink
    let counters: HTTPCounters
    let log: Log
    /// Nil where others listen.
    let listener: ListenSocket?
    /// Connections of others for which there is no room at the moment; the link bounds them.
    var adoptions: [Adoption] = []

    var connections: [LibraryConnection: Connection] = [:]
    var exchanges: [UInt64: Exchange] = [:]
    var exchangeOf: [LibraryConnection: Exchange] = [:]
    var sockets: [UInt64: SocketSession] = [:]
    var socketOf: [LibraryConnection: SocketSession] = [:]
    /// WebSockets accepted by the handler, between libwebsockets' two questions.
    var upgrades: [LibraryConnection: Upgrade] = [:]
    /// WebSockets that have something to send, and how many of them had their turn.
    private var due: [UInt64] = []
    private var served = 0
    var vigil: Vigil
    var limits: AddressLimits
    var lastID: UInt64 = 0
    /// When a graceful stop ends, in the loop's milliseconds.
    var stopDeadline: UInt64?
    /// Bytes for `lws_write`, after the room it wants in front; made in `init` and freed in `deinit`.
    let scratch: UnsafeMutableRawBufferPointer
    let prefix = Int(cws_prefix())

    private var library: LibraryContext?
    private let wakeup = UnsafeMutablePointer<uv_async_t>.allocate(capacity: 1)
    private let sweep = UnsafeMutablePointer<uv_timer_t>.allocate(capacity: 1)
    private let accepting = UnsafeMutablePointer<uv_poll_t>.allocate(capacity: 1)
    private var isAccepting = false
    private var hasLeft = false
    private var nextForgetting: UInt64 = 0
    /// When room may be made again, in the loop's milliseconds.
    var nextRoomMaking: UInt64 = 0
    var hasWarnedOfProxy = false
    let certificates = CertificateSlot()

    /// How often time-outs are looked at, in milliseconds.
    private static let sweepInterval: UInt64 = 250
    /// Written at once; also what a response's first packet burst may hold.
    static let chunkLength = 32 * 1024

    init(
        settings: HTTPServerSettings, listener: consuming ListenSocket?, handler: any HTTPHandler,
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
        vigil = Vigil(settings)
        unsafe scratch = .allocate(byteCount: prefix + 2 * Self.chunkLength, alignment: 16)
    }

    deinit {
        unsafe wakeup.deallocate()
        unsafe sweep.deallocate()
        unsafe accepting.deallocate()
        unsafe scratch.deallocate()
    }

    /// Milliseconds on the loop's own clock.
    var now: UInt64 { library.map { unsafe uv_now($0.loop) } ?? 0 }

    /// Whether libwebsockets holds bytes that it has read and not yet looked at, of any connection.
    var hasUnreadBytes: Bool { unsafe lws_service_adjust_timeout(library?.context, 1, 0) == 0 }

    func nextID() -> UInt64 {
        lastID += 1
        return lastID
    }

    // MARK: Life

    /// Serves until it is told to stop.
    /// - Parameter started: called once it accepts connections, or cannot.
    func run(_ started: (Result<Void, HTTPServerError>) -> Void) {
        // Whoever calls this holds the loop until it returns, and nothing calls back after that.
        let this = unsafe Unmanaged.passUnretained(self).toOpaque()
        let library: LibraryContext
        do throws(HTTPServerError) {
            library = try unsafe LibraryContext(settings, user: this)
        } catch {
            started(.failure(error))
            return
        }
        self.library = library
        unsafe uv_async_init(library.loop, wakeup) { unsafe ServiceLoop.of($0?.pointee.data)?.drainLink() }
        unsafe wakeup.pointee.data = unsafe this
        unsafe uv_timer_init(library.loop, sweep)
        unsafe sweep.pointee.data = unsafe this
        unsafe uv_timer_start(
            sweep, { unsafe ServiceLoop.of($0?.pointee.data)?.enforceDeadlines() }, Self.sweepInterval,
            Self.sweepInterval)
        if let descriptor = listenDescriptor {
            unsafe uv_poll_init(library.loop, accepting, descriptor)
            unsafe accepting.pointee.data = unsafe this
        }
        resumeAccepting()
        unsafe link.open(wakeup)
        started(.success(()))
        unsafe uv_run(library.loop, UV_RUN_DEFAULT)
        leave(library)
    }

    /// Closes what is left; the loop has stopped and runs only for this.
    private func leave(_ library: LibraryContext) {
        hasLeft = true
        link.close()
        for connection in connections.values { unsafe cws_kill(connection.wsi.pointer) }
        while !connections.isEmpty { unsafe uv_run(library.loop, UV_RUN_ONCE) }
        for adoption in adoptions { close(adoption.descriptor) }
        adoptions = []
        var open = 0
        unsafe withUnsafeMutablePointer(to: &open) { open in
            var handles = unsafe [UnsafeMutableRawPointer(wakeup), UnsafeMutableRawPointer(sweep)]
            if listener != nil { unsafe handles.append(UnsafeMutableRawPointer(accepting)) }
            unsafe open.pointee = unsafe handles.count
            unsafe handles.forEach { handle in
                let handle = unsafe handle.assumingMemoryBound(to: uv_handle_t.self)
                unsafe handle.pointee.data = UnsafeMutableRawPointer(open)
                unsafe uv_close(handle) {
                    unsafe $0?.pointee.data.assumingMemoryBound(to: Int.self).pointee -= 1
                }
            }
            // Until the last of them has been closed: `open` is gone after that.
            while unsafe open.pointee > 0 { unsafe uv_run(library.loop, UV_RUN_ONCE) }
        }
    }

    // MARK: Accepting

    /// Nil where others listen.
    var listenDescriptor: CInt? {
        switch listener {
        case .some(let listener): listener.descriptor
        case .none: nil
        }
    }

    private func resumeAccepting() {
        serveAdoptions()
        guard !isAccepting, stopDeadline == nil, listener != nil else { return }
        isAccepting = true
        unsafe uv_poll_start(accepting, CInt(UV_READABLE.rawValue)) { handle, _, _ in
            unsafe ServiceLoop.of(handle?.pointee.data)?.acceptConnections()
        }
    }

    private func pauseAccepting() {
        guard isAccepting else { return }
        isAccepting = false
        unsafe uv_poll_stop(accepting)
    }

    private func acceptConnections() {
        // A few at a time, so that those already there get their turn.
        for _ in 0..<64 {
            guard connections.count < settings.maximumConnections else {
                makeRoom()
                return pauseAccepting()
            }
            switch listener?.accept() ?? .nothing {
            case .nothing: return
            case .exhausted:
                log.warning("accept-exhausted", ["connections": connections.count])
                return pauseAccepting()
            case .connection(let descriptor, let address): admit(descriptor, address)
            }
        }
    }

    /// As far as there is room.
    private func serveAdoptions() {
        while stopDeadline == nil, !adoptions.isEmpty {
            guard connections.count < settings.maximumConnections else { return makeRoom() }
            let adoption = adoptions.removeFirst()
            link.endAdoption()
            admit(adoption.descriptor, adoption.client, isDecrypted: adoption.isDecrypted)
        }
    }

    private func admit(_ descriptor: CInt, _ address: TransportAddress, isDecrypted: Bool = false) {
        let isProxy = settings.trustedProxies.contains(address.ip)
        let client = AddressLimits.Client(ip: address.ip)
        guard isProxy || limits.connect(client, at: now) else {
            counters.add(1, counters.refusedConnections)
            log.debug("connection-refused", ["address": address, "reason": "too-many"])
            close(descriptor)
            return
        }
        var on: CInt = 1
        unsafe setsockopt(descriptor, CInt(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<CInt>.size))
        // Room for a whole answer: while one waits for room, libwebsockets cannot pause reading.
        var room: CInt = 256 * 1024
        unsafe setsockopt(descriptor, SOL_SOCKET, SO_SNDBUF, &room, socklen_t(MemoryLayout<CInt>.size))
        let speaksTLS: CInt = settings.tls == nil || isDecrypted ? 0 : 1
        guard let pointer = unsafe cws_adopt(library?.host, descriptor, speaksTLS) else {
            if !isProxy { limits.disconnect(client) }
            return
        }
        let wsi = unsafe LibraryConnection(pointer: pointer)
        counters.add(1, counters.connections)
        let connection = Connection(
            wsi: wsi, address: address, isProxy: isProxy,
            deadline: now + settings.receiveTimeout.milliseconds)
        if !isProxy { connection.counted = client }
        connections[wsi] = connection
    }

    // MARK: What the loop calls

    static func of(_ pointer: UnsafeMutableRawPointer?) -> ServiceLoop? {
        unsafe pointer.map { unsafe Unmanaged<ServiceLoop>.fromOpaque($0).takeUnretainedValue() }
    }

    private func drainLink() {
        for command in link.take() {
            switch command {
            case .answer(let id, let response): answer(id, response)
            case .piece(let id, let bytes): continueFile(id, bytes)
            case .streamed(let id): continueStream(id)
            case .adopt(let adoption): adoptions.append(adoption)
            case .present(let address): present(address)
            case .turn(let continuation): continuation.resume()
            case .stop(let grace): beginStop(grace)
            }
        }
        serveAdoptions()
        serveSockets()
    }

    private func present(_ address: UInt) {
        guard let certificate = ServerCertificate(address: address) else { return }
        certificates.put(certificate)
        log.info("certificate-renewed")
    }

    /// A part of them at a time, so that thousands who are told something do not keep requests waiting.
    private func serveSockets() {
        takeDue()
        let end = min(served + Self.socketsAtOnce, due.count)
        while served < end {
            if let session = sockets[due[served]] { serve(session) }
            served += 1
        }
        // Those that came meanwhile called once, and that call is over.
        takeDue()
        if served < due.count { unsafe uv_async_send(wakeup) }
    }

    private func takeDue() {
        guard served == due.count else { return }
        due.removeAll(keepingCapacity: due.capacity <= Self.socketsAtOnce * 64)
        served = 0
        link.takeSockets(into: &due)
    }

    private static let socketsAtOnce = 256

    private func enforceDeadlines() {
        let now = now
        for exchange in exchanges.values where exchange.deadline <= now { giveUp(exchange) }
        endDesertedStreams()
        keepVigil()
        for connection in connections.values {
            guard let deadline = connection.deadline, deadline <= now else { continue }
            connection.deadline = nil
            unsafe cws_kill(connection.wsi.pointer)
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
        for adoption in adoptions {
            link.endAdoption()
            close(adoption.descriptor)
        }
        adoptions = []
        for session in sockets.values { session.connection.close(.goingAway) }
        endStreams()
        for connection in connections.values
        where !connection.isBusy && socketOf[connection.wsi] == nil {
            unsafe cws_kill(connection.wsi.pointer)
        }
        endStopIfDone()
    }

    func endStopIfDone() {
        guard let stopDeadline, !hasLeft else { return }
        guard exchanges.isEmpty && sockets.isEmpty || stopDeadline <= now else { return }
        unsafe uv_stop(library?.loop)
    }
}

extension Duration {
    /// Whole milliseconds, never negative.
    var milliseconds: UInt64 { UInt64(max(0, wholeNanoseconds / 1_000_000)) }
}
