import Base
import Peer

/// A request to record the packet headers of a session.
package struct CaptureOpening: Sendable {
    /// The session whose packets are recorded.
    package let session: SessionID
    /// The server's address in the file.
    package let local: TransportAddress
    /// Duration of the recording.
    package let time: Duration

    package init(session: SessionID, local: TransportAddress, time: Duration) {
        self.session = session
        self.local = local
        self.time = time
    }
}

/// The result of a capture.
package enum CaptureOutcome: Sendable {
    /// A pcap file of the requested time, or until the end of the session.
    case captured([UInt8])
    /// Refused, because another capture is under way.
    case running
}

/// A capture that is under way.
struct RunningCapture {
    let session: Session
    let headers: HeaderCapture
    let deadline: MonotonicTime
    let inquiry: Inquiry<CaptureOutcome>
}

extension Worker {
    /// The capture to which the sender of the worker's datagrams has to show them; nil while there is none.
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
