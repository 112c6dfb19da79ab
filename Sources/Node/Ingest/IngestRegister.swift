import Base
import Ingest
import Stage

/// A publisher's admission by the stage, kept until the formats of its media are known.
struct IngestAdmission {
    let request: SessionRequest
    let welcome: Node.Welcome
}

/// The publishers by RTMP and SRT, by connection and by session.
struct IngestRegister {
    /// First a publisher is admitted; it has a session once its formats are known.
    private enum State {
        case admitted(IngestAdmission)
        case open(SessionID, in: StreamID, IngestStatus)
    }

    private var states: [IngestConnection: State] = [:]
    /// The connection of each open session.
    private var connections: [SessionID: IngestConnection] = [:]
    /// The connections whose pictures are re-encoded.
    private var converted: Set<IngestConnection> = []

    mutating func admit(_ admission: IngestAdmission, on connection: IngestConnection) {
        states[connection] = .admitted(admission)
    }

    /// Nil for a connection that is gone or has a session already.
    func admission(of connection: IngestConnection) -> IngestAdmission? {
        if case .admitted(let admission)? = states[connection] { admission } else { nil }
    }

    /// The number of publishers whose pictures are re-encoded.
    var conversionCount: Int { converted.count }

    /// Reserves one of the conversions for a publisher, until its connection is gone.
    /// - Returns: false if `limit` are reserved already.
    mutating func convert(_ connection: IngestConnection, limit: Int) -> Bool {
        guard converted.count < limit else { return false }
        converted.insert(connection)
        return true
    }

    /// Notes the session of a connection that was admitted.
    mutating func open(_ session: SessionID, on connection: IngestConnection, _ formats: IngestFormats) {
        guard let request = admission(of: connection)?.request, let sender = request.sender else { return }
        states[connection] = .open(
            session, in: request.stream, IngestStatus(sender.id, by: connection.protocolName, formats))
        connections[session] = connection
    }

    /// Nil for a session that does not belong to such a publisher.
    func connection(of session: SessionID) -> IngestConnection? { connections[session] }

    /// The stream and the identity of a publisher; nil for a connection that was not admitted.
    func publisher(of connection: IngestConnection) -> (stream: StreamID, id: ParticipantID)? {
        switch states[connection] {
        case .admitted(let admission): admission.request.sender.map { (admission.request.stream, $0.id) }
        case .open(_, let stream, let status): (stream, status.participant)
        case nil: nil
        }
    }

    /// Nil for a connection without a session.
    func status(of connection: IngestConnection) -> IngestStatus? {
        if case .open(_, _, let status)? = states[connection] { status } else { nil }
    }

    /// Changes the status of a connection.
    /// - Returns: the status after the change; nil for a connection without a session.
    mutating func update(
        _ connection: IngestConnection, _ change: (inout IngestStatus) -> Void
    ) -> IngestStatus? {
        guard case .open(let session, let stream, var status)? = states[connection] else { return nil }
        change(&status)
        states[connection] = .open(session, in: stream, status)
        return status
    }

    /// The status of each publisher of a stream, in the order of their identities.
    func statuses(in stream: StreamID) -> [IngestStatus] {
        states.values.compactMap { state in
            if case .open(_, stream, let status) = state { status } else { nil }
        }.sorted { $0.participant.description < $1.participant.description }
    }

    /// Notes that a session has ended; its connection is closed afterwards.
    /// - Returns: the session's connection; nil if there is none.
    mutating func end(_ session: SessionID) -> IngestConnection? {
        connections.removeValue(forKey: session)
    }

    /// Removes a connection that is gone.
    /// - Returns: its session, if that is still open.
    mutating func lose(_ connection: IngestConnection) -> SessionID? {
        converted.remove(connection)
        guard case .open(let session, _, _)? = states.removeValue(forKey: connection) else { return nil }
        return connections.removeValue(forKey: session) == nil ? nil : session
    }
}
