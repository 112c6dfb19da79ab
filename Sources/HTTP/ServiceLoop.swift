import Base
import CWebSockets
import Glibc

/// The service thread: a libuv loop with one libwebsockets context, which owns all HTTP connections.
///
/// Everything here runs on that one thread, without locks; other threads post commands to the `ServiceLink`. Handlers
/// run elsewhere, as tasks, except for the calls that `HTTPHandler` documents as made on the service thread.
@safe final class ServiceLoop {
    let settings: HTTPServerSettings
    let handler: any HTTPHandler
    let link: ServiceLink
    let counters: HTTPCounters
    let log: Log
    /// Nil if another component listens and hands connections over (`HTTPServerSettings.listens`).
    let listener: ListenSocket?
    /// Handed-over connections that wait for a free place; `ServiceLink` bounds their number.
    var adoptions: [Adoption] = []

    var connections: [LibraryConnection: Connection] = [:]
    /// By exchange id, for answers from other threads: by then the connection may be gone and its address reused.
    var exchanges: [UInt64: Exchange] = [:]
    /// By connection, for callbacks: HTTP/1.1 has at most one request under way on each.
    var exchangeOf: [LibraryConnection: Exchange] = [:]
    /// WebSockets by id, for messages from other threads.
    var sockets: [UInt64: SocketSession] = [:]
    /// WebSockets by connection, for callbacks.
    var socketOf: [LibraryConnection: SocketSession] = [:]
    /// WebSockets that the handler accepted, between libwebsockets' callbacks `CONFIRM_UPGRADE` and `ESTABLISHED`.
    var upgrades: [LibraryConnection: Upgrade] = [:]
    /// Ids of WebSockets with queued output, and how many of them were served already.
    private var due: [UInt64] = []
    private var served = 0
    var vigil: Vigil
    var limits: AddressLimits
    var lastID: UInt64 = 0
    /// Bytes of all bodies that have not arrived completely.
    var bodyBytes = 0
    /// End of a graceful stop, in milliseconds of the loop's clock; nil unless the server is stopping.
    var stopDeadline: UInt64?
    /// Buffer for `lws_write`, which needs `prefix` writable bytes in front of the payload; freed in `deinit`.
    let scratch: UnsafeMutableRawBufferPointer
    /// Bytes that libwebsockets overwrites in front of a payload (`LWS_PRE`).
    let prefix = Int(cws_prefix())

    private var library: LibraryContext?
    private let wakeup = UnsafeMutablePointer<uv_async_t>.allocate(capacity: 1)
    private let sweep = UnsafeMutablePointer<uv_timer_t>.allocate(capacity: 1)
    private let accepting = UnsafeMutablePointer<uv_poll_t>.allocate(capacity: 1)
    private var isAccepting = false
    /// Set once the loop has stopped, so that closing the last connections does not stop it again.
    private var hasLeft = false
    /// When idle addresses are removed from `limits` next, in milliseconds of the loop's clock.
    private var nextForgetting: UInt64 = 0
    /// When `makeRoom` may run again, in milliseconds of the loop's clock.
    var nextRoomMaking: UInt64 = 0
    /// Limits the warning about a misconfigured proxy to one per run.
    var hasWarnedOfProxy = false
    let certificates = CertificateSlot()

    /// Interval between checks of all deadlines, in milliseconds: the error of every timeout here.
    private static let sweepInterval: UInt64 = 250
    /// Bytes of a body per call of `lws_write`; `scratch` has room for twice as many, so that a head fits as well.
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

    /// Milliseconds on the loop's monotonic clock, as of the start of this turn; 0 before the loop runs.
    var now: UInt64 { library.map { unsafe uv_now($0.loop) } ?? 0 }

    /// Whether libwebsockets holds bytes of any connection that it has read but not parsed yet.
    var hasUnreadBytes: Bool { unsafe lws_service_adjust_timeout(library?.context, 1, 0) == 0 }

    func nextID() -> UInt64 {
        lastID += 1
        return lastID
    }

    // MARK: Life

    /// Serves until a `stop` command has been carried out; blocks the calling thread.
    /// - Parameter started: called once, as soon as connections are accepted or the start has failed.
    func run(_ started: (Result<Void, HTTPServerError>) -> Void) {
        // Unretained is safe: the caller holds this object until `run` returns, and no callback comes after that.
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

    /// Closes all connections and handles after the loop has stopped.
    ///
    /// libuv closes handles asynchronously, so the loop has to run until each close callback has been called.
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
            // The close callbacks write to `open`, which is on this stack frame.
            while unsafe open.pointee > 0 { unsafe uv_run(library.loop, UV_RUN_ONCE) }
        }
    }

    // MARK: Accepting

    /// Nil if another component listens.
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

    /// Leaves new connections in the kernel's queue; the next deadline check, at most 250 ms later, resumes.
    private func pauseAccepting() {
        guard isAccepting else { return }
        isAccepting = false
        unsafe uv_poll_stop(accepting)
    }

    private func acceptConnections() {
        // At most 64 per turn, so that a flood of new connections does not starve existing ones.
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

    /// Admits handed-over connections while there are free places.
    private func serveAdoptions() {
        while stopDeadline == nil, !adoptions.isEmpty {
            guard connections.count < settings.maximumConnections else { return makeRoom() }
            let adoption = adoptions.removeFirst()
            link.endAdoption()
            admit(adoption.descriptor, adoption.client, isDecrypted: adoption.isDecrypted)
        }
    }

    /// Gives an accepted socket to libwebsockets, or closes it if its address has too many connections.
    ///
    /// A proxy's own connections are not counted: each request on them counts for the client it names.
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
        // Fits a whole typical response: libwebsockets cannot pause reading while it has unsent bytes.
        var room: CInt = 256 * 1024
        unsafe setsockopt(descriptor, SOL_SOCKET, SO_SNDBUF, &room, socklen_t(MemoryLayout<CInt>.size))
        // A handed-over connection may have had its TLS removed already.
        let speaksTLS: CInt = settings.tls == nil || isDecrypted ? 0 : 1
        // libwebsockets owns the descriptor from here on and closes it even if this fails.
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

    /// The loop behind a libuv handle's `data`.
    static func of(_ pointer: UnsafeMutableRawPointer?) -> ServiceLoop? {
        unsafe pointer.map { unsafe Unmanaged<ServiceLoop>.fromOpaque($0).takeUnretainedValue() }
    }

    /// Performs the commands that other threads have posted; runs when `wakeup` fires.
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

    /// Presents a renewed certificate in handshakes from now on.
    private func present(_ address: UInt) {
        guard let certificate = ServerCertificate(address: address) else { return }
        certificates.put(certificate)
        log.info("certificate-renewed")
    }

    /// Writes queued messages of at most `socketsAtOnce` WebSockets, so that a message to thousands of clients does not
    /// delay requests; the rest follow in the next turn.
    private func serveSockets() {
        takeDue()
        let end = min(served + Self.socketsAtOnce, due.count)
        while served < end {
            if let session = sockets[due[served]] { serve(session) }
            served += 1
        }
        // The wake-up for ids that arrived meanwhile has been consumed by this turn, so this loop wakes itself.
        takeDue()
        if served < due.count { unsafe uv_async_send(wakeup) }
    }

    /// Fetches the next batch of ids once the present one is finished; large buffers are released.
    private func takeDue() {
        guard served == due.count else { return }
        due.removeAll(keepingCapacity: due.capacity <= Self.socketsAtOnce * 64)
        served = 0
        link.takeSockets(into: &due)
    }

    /// WebSockets served per turn of the loop.
    private static let socketsAtOnce = 256

    /// Runs every `sweepInterval`: enforces timeouts and resumes whatever was paused for lack of room.
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

    /// Begins a graceful stop: accepts nothing, closes idle connections, and lets requests finish.
    ///
    /// WebSockets are closed with 1001 after their queued messages.
    /// - Parameter grace: time after which the remaining connections are cut.
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

    /// Stops the loop once nothing is under way or the grace period is over.
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
