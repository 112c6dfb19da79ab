import Base
import Node

/// What the routes need of the server behind them; a `Node`, and a stand-in in tests.
package protocol SessionService: Sendable {
    func createSession(_ request: SessionRequest) async throws(SessionRefusal) -> CreatedSession
    /// The strong entity tag of the session's ICE credentials, without quotes.
    func entityTag(of id: SessionID) async -> String?
    /// Which stream and purpose a session has; nil if there is no such session.
    func session(_ id: SessionID) async -> (stream: StreamID, purpose: SessionRequest.Purpose)?
    func trickle(_ id: SessionID, fragment text: String) async throws(SessionRefusal)
    func restartICE(
        _ id: SessionID, fragment text: String
    ) async throws(SessionRefusal) -> (fragment: String, entityTag: String)
    /// - Returns: false if there is no such session.
    func endSession(_ id: SessionID) async -> Bool
    func streamSnapshots() async -> [StreamSnapshot]
    func streamSnapshot(_ id: StreamID) async -> StreamSnapshot?
    /// The stream's state now and after each change.
    func changes(of id: StreamID) async -> AsyncStream<StreamSnapshot>
    /// Whether it takes new sessions.
    var isReady: Bool { get async }
    /// - Parameters: `published` and `played`: how long their requests took to be answered.
    func metrics(published: DurationHistogram, played: DurationHistogram) async -> [Metric]
}

extension Node: SessionService {
    package var isReady: Bool { acceptsSessions }

    package func metrics(published: DurationHistogram, played: DurationHistogram) -> [Metric] {
        let workers = statistics()
        return MetricsOfNode.collect(workers, streamSnapshots())
            + [MetricsOfNode.joins(workers, published: published, played: played)]
    }
}
