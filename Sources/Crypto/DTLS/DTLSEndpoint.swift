import Base

/// One end of a DTLS 1.2 association that keys SRTP.
///
/// Takes datagrams and the time, returns what is to be done; owns no socket, reads no clock. A server makes nothing
/// until a piece of a ClientHello comes. Flights that are not answered are repeated by the time this is
/// told, so that it runs in virtual time.
/// - Source: RFC 6347 §4.2.4 (repetition), RFC 5764 (SRTP), RFC 8827 §6.5 (certificates).
package final class DTLSEndpoint {
    /// What the owner has to do, in order.
    package enum Effect: Sendable {
        /// One datagram.
        case send([UInt8])
        /// The handshake is done, and the peer's certificate is one of those that were announced.
        case connected(SRTPKeyingMaterial)
        case applicationData([UInt8])
        /// The last effect there is.
        case closed(CloseReason)
    }

    /// Why an association is over.
    package enum CloseReason: Equatable, Sendable {
        /// `close()` was called.
        case closedHere
        /// The peer sent close_notify or a fatal alert after the handshake.
        case closedByPeer
        /// The peer's certificate is none of those that were announced.
        case wrongFingerprint
        /// The peer and this side have no SRTP profile in common.
        case noSRTPProfile
        /// The handshake took longer than `handshakeTimeout`.
        case timedOut
        /// The text is OpenSSL's.
        case handshakeFailed(String)
    }

    /// What the association is at; each case has what only it needs.
    private enum State {
        case idle
        case handshaking(DTLSConnection, Flight)
        case connected(DTLSConnection, LastFlight)
        case released(Released)
        case closed
    }

    /// The datagrams that wait for an answer.
    private struct Flight {
        var datagrams: [[UInt8]] = []
        /// Before the next repetition; doubles.
        var interval = DTLSEndpoint.firstRepetition
        /// Nil while there is nothing to repeat.
        var repeatAt: MonotonicTime?
        var sentAt = MonotonicTime.zero
        var giveUpAt: MonotonicTime
    }

    /// The datagrams that ended the handshake, for a peer that shows by its repetition that they were lost.
    private struct LastFlight {
        var datagrams: [[UInt8]]
        var sentAt: MonotonicTime
    }

    /// What stays of a connection when `SSL` is freed: about 300 bytes instead of 75 kB.
    private struct Released {
        var lastFlight: LastFlight
        /// Encrypted in advance.
        var closeNotify: [[UInt8]]
        var alerts: DTLSAlertReader?
    }

    /// How long a handshake may take.
    package static let handshakeTimeout = Duration.seconds(30)
    /// OpenSSL's 1 s would make a lost datagram cost a second of black picture.
    static let firstRepetition = Duration.milliseconds(100)
    static let longestRepetition = Duration.seconds(2)
    /// A flight is repeated at most this often because the peer repeats its own.
    static let answerInterval = Duration.milliseconds(40)
    /// Longer datagrams are no part of any handshake.
    private static let maximumDatagram = 8_192
    /// Record header, explicit nonce and tag.
    private static let recordOverhead = 13 + 8 + 16

    private let context: DTLSContext
    private let role: DTLSRole
    private let expected: [CertificateFingerprint]
    private var state = State.idle
    private var packer = DTLSRecordPacker()

    /// - Parameter expectedFingerprints: the peer's certificate must have one of these.
    package init(context: DTLSContext, role: DTLSRole, expectedFingerprints: [CertificateFingerprint]) {
        self.context = context
        self.role = role
        expected = expectedFingerprints
    }

    /// Whether keys were exported; stays true after `releaseHandshake()`, until the end.
    package var isConnected: Bool {
        switch state {
        case .connected, .released: true
        case .idle, .handshaking, .closed: false
        }
    }

    /// Whether `.closed` was given out; nothing is sent or understood any more.
    package var isClosed: Bool {
        if case .closed = state { true } else { false }
    }

    /// When `advance(to:)` wants to be called; nil while nothing is awaited.
    package var deadline: MonotonicTime? {
        guard case .handshaking(_, let flight) = state else { return nil }
        return flight.repeatAt.map { min($0, flight.giveUpAt) } ?? flight.giveUpAt
    }

    /// Longest application data that fits into one datagram, in bytes.
    package var maximumApplicationData: Int {
        context.mtu - Self.recordOverhead
    }

    // MARK: Inputs

    /// Sends the first flight, if this is the client; a server waits.
    package func start(at now: MonotonicTime) -> [Effect] {
        guard role == .client, case .idle = state else { return [] }
        return begin(at: now) { self.handshake($0, $1, at: now) }
    }

    /// Takes a datagram whose first byte says that it is DTLS.
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
            // A client that says hello again has not heard the answer.
            guard effects.isEmpty, role == .server, first.carries(DTLSRecord.clientHello, in: datagram) else {
                return effects
            }
            return repeatFlight(at: now)
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

    /// Repeats the flight that was not answered, or gives up, if it is time.
    package func advance(to now: MonotonicTime) -> [Effect] {
        guard case .handshaking(let connection, var flight) = state else { return [] }
        guard now < flight.giveUpAt else { return end(.timedOut, saying: [packer.plainCloseNotify()]) }
        guard let repeatAt = flight.repeatAt, repeatAt <= now else { return [] }
        flight.interval = min(flight.interval * 2, Self.longestRepetition)
        flight.repeatAt = now + flight.interval
        return send(flight, on: connection, at: now)
    }

    /// Encrypts application data: one datagram.
    ///
    /// - Parameter bytes: at most `maximumApplicationData`; more, or data before the handshake is done or after
    ///   `releaseHandshake()`, is dropped.
    package func send(_ bytes: Span<UInt8>) -> [Effect] {
        guard case .connected(let connection, _) = state, !bytes.isEmpty,
            bytes.count <= maximumApplicationData,
            connection.write(bytes)
        else { return [] }
        return sends(connection.takeOutput())
    }

    /// Says goodbye to the peer.
    package func close() -> [Effect] {
        switch state {
        case .closed: return []
        case .idle: return end(.closedHere, saying: [])
        case .handshaking: return end(.closedHere, saying: [packer.plainCloseNotify()])
        case .connected(let connection, _): return end(.closedHere, saying: closeNotify(connection))
        case .released(let released): return end(.closedHere, saying: released.closeNotify)
        }
    }

    /// Frees most of the memory once connected: 75 kB.
    ///
    /// Afterwards there is no application data. The peer's repetitions are still answered, its close_notify is
    /// still noticed, and `close()` still sends one.
    package func releaseHandshake() {
        guard case .connected(let connection, let lastFlight) = state else { return }
        let alerts = connection.alertReader(as: role)
        state = .released(
            Released(lastFlight: lastFlight, closeNotify: closeNotify(connection), alerts: alerts))
    }

    // MARK: Steps

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

    private func feed(_ records: [DTLSRecord], of datagram: Span<UInt8>, to connection: DTLSConnection) {
        for record in records where connection.canRead(record) {
            connection.feed(datagram.extracting(record.range))
        }
    }

    /// Lets OpenSSL take what was fed, and sends its answer.
    private func handshake(_ connection: DTLSConnection, _ flight: Flight, at now: MonotonicTime) -> [Effect]
    {
        let progress = connection.handshake()
        let datagrams = packer.pack(connection.takeOutput(), mtu: context.mtu)
        switch progress {
        case .wantsMore:
            var flight = flight
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
            return datagrams.map(Effect.send) + [.connected(material)] + read(connection)
        }
    }

    private func read(_ connection: DTLSConnection) -> [Effect] {
        let (data, isClosed) = connection.read()
        let effects = data.map(Effect.applicationData) + sends(connection.takeOutput())
        return isClosed ? effects + end(.closedByPeer, saying: closeNotify(connection)) : effects
    }

    /// Sends the current flight again, unless that was done just now.
    private func repeatFlight(at now: MonotonicTime) -> [Effect] {
        guard case .handshaking(let connection, let flight) = state, flight.repeatAt != nil,
            now >= flight.sentAt + Self.answerInterval
        else { return [] }
        return send(flight, on: connection, at: now)
    }

    private func send(_ flight: Flight, on connection: DTLSConnection, at now: MonotonicTime) -> [Effect] {
        var flight = flight
        flight.sentAt = now
        flight.datagrams = flight.datagrams.map { packer.number($0) }
        state = .handshaking(connection, flight)
        return flight.datagrams.map(Effect.send)
    }

    /// Sends the last flight again if `records` show that the peer still waits for it.
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

    private func end(_ reason: CloseReason, saying datagrams: [[UInt8]]) -> [Effect] {
        state = .closed
        return datagrams.map(Effect.send) + [.closed(reason)]
    }
}
