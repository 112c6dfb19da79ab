import Base

/// One side of a DTLS 1.2 association that negotiates SRTP keys.
///
/// It consumes datagrams and the time, and returns what to do; it owns no socket and reads no clock. A server
/// allocates nothing until a part of a ClientHello arrives. Unanswered flights are retransmitted by the time that is
/// passed in, so it also runs in virtual time.
/// - Source: RFC 6347 §4.2.4 (retransmission), RFC 5764 (SRTP), RFC 8827 §6.5 (certificates).
package final class DTLSEndpoint {
    /// What the owner has to do, in order.
    package enum Effect: Sendable {
        /// Send this datagram.
        case send([UInt8])
        /// The handshake is complete, and the peer's certificate has one of the expected fingerprints.
        case connected(SRTPKeyingMaterial)
        /// The peer sent data, which is used for SCTP.
        case applicationData([UInt8])
        /// The association is over; the last effect.
        case closed(CloseReason)
    }

    /// Why an association is over.
    package enum CloseReason: Equatable, Sendable {
        /// `close()` was called.
        case closedHere
        /// The peer sent close_notify or a fatal alert after the handshake.
        case closedByPeer
        /// The peer's certificate has none of the expected fingerprints, or a key that is not accepted.
        case wrongFingerprint
        /// The two sides have no SRTP profile in common.
        case noSRTPProfile
        /// The handshake took longer than `handshakeTimeout`.
        case timedOut
        /// The handshake failed, with OpenSSL's reason.
        case handshakeFailed(String)
    }

    /// The state of the association; each case holds only what it needs.
    private enum State {
        /// A server waits for a ClientHello, a client for `start`.
        case idle
        case handshaking(DTLSConnection, Flight)
        case connected(DTLSConnection, LastFlight)
        case released(Released)
        case closed
    }

    /// The datagrams of the current flight, which the peer has not answered.
    private struct Flight {
        var datagrams: [[UInt8]] = []
        /// Time until the next retransmission; doubles each time.
        var interval = DTLSEndpoint.firstRepetition
        /// Nil while there is nothing to retransmit.
        var repeatAt: MonotonicTime?
        /// When it was last sent, for whatever reason.
        var sentAt = MonotonicTime.zero
        /// When the whole handshake has taken too long.
        var giveUpAt: MonotonicTime
    }

    /// The datagrams that completed the handshake, in case the peer's retransmissions show that they were lost.
    private struct LastFlight {
        var datagrams: [[UInt8]]
        var sentAt: MonotonicTime
    }

    /// What is left of a connection after its `SSL` was freed: about 300 bytes instead of 75 kB.
    private struct Released {
        var lastFlight: LastFlight
        /// Encrypted while the keys were still there.
        var closeNotify: [[UInt8]]
        /// Nil if the peer's alerts cannot be read; its close_notify then goes unnoticed.
        var alerts: DTLSAlertReader?
    }

    /// Longest duration of a handshake.
    package static let handshakeTimeout = Duration.seconds(30)
    /// Time until the first retransmission; with OpenSSL's 1 s, a lost datagram would cost a second without a
    /// picture.
    static let firstRepetition = Duration.milliseconds(100)
    static let longestRepetition = Duration.seconds(2)
    /// Shortest time between two transmissions of a flight that the peer's retransmissions cause.
    static let answerInterval = Duration.milliseconds(40)
    /// Longer datagrams, in bytes, are not part of any handshake and are dropped.
    private static let maximumDatagram = 8_192
    /// Bytes of record header, explicit nonce and tag.
    private static let recordOverhead = 13 + 8 + 16

    private let context: DTLSContext
    private let role: DTLSRole
    private let expected: [CertificateFingerprint]
    private var state = State.idle
    private var packer = DTLSRecordPacker()

    /// - Parameters:
    ///   - context: of the worker that the endpoint belongs to.
    ///   - expectedFingerprints: the peer's certificate must have one of these.
    package init(context: DTLSContext, role: DTLSRole, expectedFingerprints: [CertificateFingerprint]) {
        self.context = context
        self.role = role
        expected = expectedFingerprints
    }

    /// Whether keys were exported; stays true after `releaseHandshake()`, until the association is over.
    package var isConnected: Bool {
        switch state {
        case .connected, .released: true
        case .idle, .handshaking, .closed: false
        }
    }

    /// Whether `.closed` was returned; nothing is sent or received any more.
    package var isClosed: Bool {
        if case .closed = state { true } else { false }
    }

    /// When `advance(to:)` has to be called next; nil if nothing is scheduled.
    package var deadline: MonotonicTime? {
        guard case .handshaking(_, let flight) = state else { return nil }
        return flight.repeatAt.map { min($0, flight.giveUpAt) } ?? flight.giveUpAt
    }

    /// Most bytes of application data that fit into one datagram.
    package var maximumApplicationData: Int {
        context.mtu - Self.recordOverhead
    }

    // MARK: Inputs

    /// Starts the handshake if this side is the client; a server waits for the client.
    package func start(at now: MonotonicTime) -> [Effect] {
        guard role == .client, case .idle = state else { return [] }
        return begin(at: now) { self.handshake($0, $1, at: now) }
    }

    /// Receives a datagram whose first byte marks it as DTLS.
    package func receive(_ datagram: Span<UInt8>, at now: MonotonicTime) -> [Effect] {
        guard datagram.count <= Self.maximumDatagram else { return [] }
        let records = DTLSRecord.parse(datagram)
        guard let first = records.first else { return [] }
        switch state {
        case .closed:
            return []
        case .idle:
            guard role == .server, first.carries(DTLSRecord.clientHello, in: datagram) else { return [] }
            return begin(at: now) { connection, flight in
                self.feed(records, of: datagram, to: connection)
                return self.handshake(connection, flight, at: now)
            }
        case .handshaking(let connection, let flight):
            feed(records, of: datagram, to: connection)
            let effects = handshake(connection, flight, at: now)
            // A client that repeats its ClientHello has not received the answer.
            guard effects.isEmpty, role == .server, first.carries(DTLSRecord.clientHello, in: datagram) else {
                return effects
            }
            return repeatFlight(at: now)
        // Handshake records do not reach OpenSSL any more; they only show that the peer lacks the last flight.
        case .connected(let connection, var lastFlight):
            var effects = repeatLastFlight(&lastFlight, for: records, at: now)
            state = .connected(connection, lastFlight)
            for record in records where record.type != .handshake && connection.canRead(record) {
                connection.feed(datagram.extracting(record.range))
                effects += read(connection)
                if isClosed { break }
            }
            return effects
        case .released(var released):
            let effects = repeatLastFlight(&released.lastFlight, for: records, at: now)
            state = .released(released)
            guard records.contains(where: { released.alerts?.isClosing($0, in: datagram) == true }) else {
                return effects
            }
            return effects + end(.closedByPeer, saying: released.closeNotify)
        }
    }

    /// Retransmits the current flight if it is due, or gives up after the longest duration of a handshake.
    package func advance(to now: MonotonicTime) -> [Effect] {
        guard case .handshaking(let connection, var flight) = state else { return [] }
        guard now < flight.giveUpAt else { return end(.timedOut, saying: [packer.plainCloseNotify()]) }
        guard let repeatAt = flight.repeatAt, repeatAt <= now else { return [] }
        flight.interval = min(flight.interval * 2, Self.longestRepetition)
        flight.repeatAt = now + flight.interval
        return send(flight, on: connection, at: now)
    }

    /// Encrypts application data into one datagram.
    ///
    /// - Parameter bytes: at most `maximumApplicationData`. Longer data, and data before the handshake is complete or
    ///   after `releaseHandshake()`, is dropped.
    package func send(_ bytes: Span<UInt8>) -> [Effect] {
        guard case .connected(let connection, _) = state, !bytes.isEmpty,
            bytes.count <= maximumApplicationData,
            connection.write(bytes)
        else { return [] }
        return sends(connection.takeOutput())
    }

    /// Ends the association, with a close_notify to the peer if it has begun.
    package func close() -> [Effect] {
        switch state {
        case .closed: return []
        case .idle: return end(.closedHere, saying: [])
        case .handshaking: return end(.closedHere, saying: [packer.plainCloseNotify()])
        case .connected(let connection, _): return end(.closedHere, saying: closeNotify(connection))
        case .released(let released): return end(.closedHere, saying: released.closeNotify)
        }
    }

    /// Frees most of the memory of a connected association: 75 kB.
    ///
    /// After that it transports no application data. It still answers the peer's retransmissions, still notices its
    /// close_notify, and `close()` still sends one.
    package func releaseHandshake() {
        guard case .connected(let connection, let lastFlight) = state else { return }
        let alerts = connection.alertReader(as: role)
        state = .released(
            Released(lastFlight: lastFlight, closeNotify: closeNotify(connection), alerts: alerts))
    }

    // MARK: Steps

    /// Creates OpenSSL's state and performs the first step with it.
    private func begin(
        at now: MonotonicTime, _ step: (DTLSConnection, Flight) -> [Effect]
    ) -> [Effect] {
        do {
            let connection = try DTLSConnection(context, role, expected: expected)
            return step(connection, Flight(giveUpAt: now + Self.handshakeTimeout))
        } catch {
            return end(.handshakeFailed(error.description), saying: [])
        }
    }

    /// Passes records to OpenSSL, except those that would harm it.
    private func feed(_ records: [DTLSRecord], of datagram: Span<UInt8>, to connection: DTLSConnection) {
        for record in records where connection.canRead(record) {
            connection.feed(datagram.extracting(record.range))
        }
    }

    /// Has OpenSSL process what was fed, and sends its answer.
    private func handshake(_ connection: DTLSConnection, _ flight: Flight, at now: MonotonicTime) -> [Effect]
    {
        let progress = connection.handshake()
        let datagrams = packer.pack(connection.takeOutput(), mtu: context.mtu)
        switch progress {
        case .wantsMore:
            var flight = flight
            // New output is a new flight: the peer has answered the one before.
            if !datagrams.isEmpty {
                flight.datagrams = datagrams
                flight.interval = Self.firstRepetition
                flight.repeatAt = now + flight.interval
                flight.sentAt = now
            }
            state = .handshaking(connection, flight)
            return datagrams.map(Effect.send)
        case .failed(let reason):
            return end(
                connection.isCertificateRefused ? .wrongFingerprint : .handshakeFailed(reason),
                saying: datagrams)
        case .finished:
            guard let material = connection.exportKeyingMaterial() else {
                return end(.noSRTPProfile, saying: datagrams + closeNotify(connection))
            }
            state = .connected(connection, LastFlight(datagrams: datagrams, sentAt: now))
            // Application data may have arrived together with the peer's last flight.
            return datagrams.map(Effect.send) + [.connected(material)] + read(connection)
        }
    }

    /// Decrypts what was fed after the handshake.
    private func read(_ connection: DTLSConnection) -> [Effect] {
        let (data, isClosed) = connection.read()
        let effects = data.map(Effect.applicationData) + sends(connection.takeOutput())
        return isClosed ? effects + end(.closedByPeer, saying: closeNotify(connection)) : effects
    }

    /// Sends the current flight again, unless it was sent just now.
    private func repeatFlight(at now: MonotonicTime) -> [Effect] {
        guard case .handshaking(let connection, let flight) = state, flight.repeatAt != nil,
            now >= flight.sentAt + Self.answerInterval
        else { return [] }
        return send(flight, on: connection, at: now)
    }

    /// Sends a flight with new record numbers.
    private func send(_ flight: Flight, on connection: DTLSConnection, at now: MonotonicTime) -> [Effect] {
        var flight = flight
        flight.sentAt = now
        flight.datagrams = flight.datagrams.map { packer.number($0) }
        state = .handshaking(connection, flight)
        return flight.datagrams.map(Effect.send)
    }

    /// Sends the last flight again if `records` show that the peer is still waiting for it.
    private func repeatLastFlight(
        _ flight: inout LastFlight, for records: [DTLSRecord], at now: MonotonicTime
    ) -> [Effect] {
        guard records.contains(where: { $0.type == .handshake }),
            now >= flight.sentAt + Self.answerInterval
        else { return [] }
        flight.sentAt = now
        flight.datagrams = flight.datagrams.map { packer.number($0) }
        return flight.datagrams.map(Effect.send)
    }

    private func closeNotify(_ connection: DTLSConnection) -> [[UInt8]] {
        connection.shutDown()
        return packer.pack(connection.takeOutput(), mtu: context.mtu)
    }

    private func sends(_ output: [UInt8]) -> [Effect] {
        packer.pack(output, mtu: context.mtu).map(Effect.send)
    }

    /// Closes, after sending the last datagrams.
    private func end(_ reason: CloseReason, saying datagrams: [[UInt8]]) -> [Effect] {
        state = .closed
        return datagrams.map(Effect.send) + [.closed(reason)]
    }
}
