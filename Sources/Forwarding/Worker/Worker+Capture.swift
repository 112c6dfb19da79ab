import Base
import Peer

/// Whose headers are to be recorded, and for how long.
package struct CaptureOpening: Sendable {
    package let session: SessionID
    /// What the file says the server's address is.
    package let local: TransportAddress
    package let time: Duration

    package init(session: SessionID, local: TransportAddress, time: Duration) {
        self.session = session
        self.local = local
        self.time = time
    }
}

/// What came of it.
package enum CaptureOutcome: Sendable {
    /// A file, as pcap, of the time that was wanted or until the session ended.
    case captured([UInt8])
    /// Another one is under way.
    case running
}

/// A recording of a session's headers that is under way.
struct RunningCapture {
    let session: Session
    let headers: HeaderCapture
    let deadline: MonotonicTime
    let inquiry: Inquiry<CaptureOutcome>
}

extension Worker {
    /// For whoever sends the worker's datagrams to let it see them; nil while nothing is recorded.
    package var headerCapture: HeaderCapture? { capture?.headers }

    func open(_ opening: CaptureOpening, _ inquiry: Inquiry<CaptureOutcome>, at now: MonotonicTime) {
        guard let session = sessions[opening.session] else { return }
        guard capture == nil else { return inquiry.answer(.running) }
        let headers = HeaderCapture(local: opening.local, clock: environment.clock)
        headers.remote = session.connection.remoteAddress
        capture = RunningCapture(
            session: session, headers: headers, deadline: now + opening.time, inquiry: inquiry)
    }

    func endCapture() {
        guard let ended = capture.take() else { return }
        ended.inquiry.answer(.captured(ended.headers.bytes))
    }
}
