import Base
import Ingest
import Stage

/// What somebody who may publish by another protocol needs to be let in.
struct IngestAdmission {
    let request: SessionRequest
    let welcome: Node.Welcome
}

/// Who publishes by another protocol than WebRTC, by connection and by session.
struct IngestRegister {
    private enum State {
        case admitted(IngestAdmission)
        case open(SessionID, in: StreamID, IngestStatus)
    }

    private var states: [IngestConnection: State] = [:]
    private var connections: [SessionID: IngestConnection] = [:]
    /// Whose pictures are made anew.
    private var converted: Set<IngestConnection> = []

    mutating func admit(_ admission: IngestAdmission, on connection: IngestConnection) {
        states[connection] = .admitted(admission)
    }

    /// Nil for a connection that is gone, or has a session.
    func admission(of connection: IngestConnection) -> IngestAdmission? {
        if case .admitted(let admission)? = states[connection] { admission } else { nil }
    }

    /// Of how many publishers pictures are made anew.
    var conversionCount: Int { converted.count }

    /// Notes that a publisher's picture is to be made anew, until the connection is gone.
    /// - Returns: false where that would be more than `limit`.
    mutating func convert(_ connection: IngestConnection, limit: Int) -> Bool {
        guard converted.count < limit else { return false }
        converted.insert(connection)
        return true
    }

    mutating func open(_ session: SessionID, on connection: IngestConnection, _ formats: IngestFormats) {
        guard let request = admission(of: connection)?.request, let sender = request.sender else { return }
        states[connection] = .open(
            session, in: request.stream, IngestStatus(sender.id, by: connection.protocolName, formats))
        connections[session] = connection
    }

    /// Nil for a session that is none of these.
    func connection(of session: SessionID) -> IngestConnection? { connections[session] }

    /// Who publishes where; nil for a connection that has not said.
    func publisher(of connection: IngestConnection) -> (stream: StreamID, id: ParticipantID)? {
        switch states[connection] {
        case .admitted(let admission): admission.request.sender.map { (admission.request.stream, $0.id) }
        case .open(_, let stream, let status): (stream, status.participant)
        case nil: nil
        }
    }

    /// Nil for a connection that has no session.
    func status(of connection: IngestConnection) -> IngestStatus? {
        if case .open(_, _, let status)? = states[connection] { status } else { nil }
    }

    /// - Returns: what comes of a connection, changed so; nil for one that has no session.
    mutating func update(
        _ connection: IngestConnection, _ change: (inout IngestStatus) -> Void
    ) -> IngestStatus? {
        guard case .open(let session, let stream, var status)? = states[connection] else { return nil }
        change(&status)
        states[connection] = .open(session, in: stream, status)
        return status
    }

    /// Of a stream's publishers.
    func statuses(in stream: StreamID) -> [IngestStatus] {
        states.values.compactMap { state in
            if case .open(_, stream, let status) = state { status } else { nil }
        }.sorted { $0.participant.description < $1.participant.description }
    }

    /// A session has ended; its connection is still to be lost.
    /// - Returns: whose it was; nil for one that is none of these.
    mutating func end(_ session: SessionID) -> IngestConnection? {
        connections.removeValue(forKey: session)
    }

    /// A connection is gone.
    /// - Returns: its session, if that is still there.
    mutating func lose(_ connection: IngestConnection) -> SessionID? {
        converted.remove(connection)
        guard case .open(let session, _, _)? = states.removeValue(forKey: connection) else { return nil }
        return connections.removeValue(forKey: session) == nil ? nil : session
    }
}
