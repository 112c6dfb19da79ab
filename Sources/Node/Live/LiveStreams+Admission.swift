import Base
import Forwarding

/// Whether there is a place for a session, and something to play.
extension LiveStreams {
    /// Throws if there is no place for the session, on the server or on the stage.
    func checkPlace(for request: SessionRequest) throws(SessionRefusal) {
        guard !isStopping else { throw .stopping }
        try sessions.checkPlace(for: request)
        guard request.purpose == .stage, !request.isAudience else { return }
        guard request.participant != nil, self[request.stream]?.room?.isFull != true else {
            throw .overloaded
        }
    }

    /// Throws if a player that does not wait would find no source.
    func checkSource(of request: SessionRequest) throws(SessionRefusal) {
        guard request.purpose == .play, request.patience == nil else { return }
        guard self[request.stream]?.isLive == true else { throw .noPublisher }
    }
}
