import Base
import Foundation
import Net
import Synchronization

/// Reconnects the clients of a run to a server that is restarted, each of them as a page would.
///
/// One loop checks all clients a hundred times a second: a task or a thread for each would use the CPU that is to be
/// measured. Their connections are on the generator's threads, as in every run.
final class ComeBack: Sendable {
    /// The result of a request.
    private enum News: Sendable {
        /// A session was created, by this ticket.
        case made(Participant, Entrance.Ticket)
        case failed(SignallingError)
        /// Whether the server still has the session with this id.
        case known(Bool, Int)
    }

    private let entrance: Entrance
    private let log: JoinLog
    private let watch: ReadinessWatch
    /// Results that the loop has not processed yet, with the client's index.
    private let news = Mutex<[(index: Int, news: News)]>([])
    /// Reasons that are counted separately; more are counted together.
    private static let mostReasons = 20
    private static let otherReason = "other reasons"
    private static let tick = Duration.milliseconds(10)

    init(_ entrance: Entrance, _ log: JoinLog, _ watch: ReadinessWatch) {
        (self.entrance, self.log, self.watch) = (entrance, log, watch)
    }

    /// Runs the clients until `isOver` says so; returns when all requests have ended.
    /// - Parameters:
    ///   - reasons: counts why requests and new sessions failed.
    ///   - isOver: called in each round with the number of clients that have no media yet.
    func run(_ clients: inout [Returner], reasons: inout [String: Int], until isOver: (Int) -> Bool) async {
        await withDiscardingTaskGroup { group in
            var random = SystemRandomNumberGenerator()
            while true {
                takeNews(&clients, &reasons, using: &random)
                let (now, outage) = (MonotonicClock.now(), watch.seen)
                var missing = 0
                for index in clients.indices {
                    // A page notices the restart by its socket, even if its session goes on.
                    if let down = outage.down, !clients[index].hasNoticed {
                        clients[index].hasNoticed = true
                        clients[index].page.socketLost(at: down, using: &random)
                    }
                    look(at: &clients[index], &reasons, at: now, &group, using: &random)
                    for action in clients[index].page.actions(at: now) {
                        perform(action, index, &clients[index], at: now, &group, using: &random)
                    }
                    let client = clients[index]
                    if !client.isKept, client.media(log[client.session.id]) == nil { missing += 1 }
                }
                if isOver(missing) { break }
                try? await Task.sleep(for: Self.tick)
            }
            // No result of a request that is still under way is needed.
            group.cancelAll()
        }
    }

    /// Applies what the log has about a client's session: it is connected, or it has failed.
    private func look(
        at client: inout Returner, _ reasons: inout [String: Int], at now: MonotonicTime,
        _ group: inout DiscardingTaskGroup, using random: inout some RandomNumberGenerator
    ) {
        guard case .playing = client.page.state, let times = log[client.session.id] else { return }
        if let time = times.dtlsConnected { client.page.connected(at: time) }
        guard case .failed(let reason) = times.outcome else { return }
        lose(&client, at: now, &group, using: &random)
        if client.isNew { Self.count(reason, in: &reasons) }
    }

    /// Notes that a session was lost, which may be the first sign of the restart.
    private func lose(
        _ client: inout Returner, at now: MonotonicTime, _ group: inout DiscardingTaskGroup,
        using random: inout some RandomNumberGenerator
    ) {
        // Only a session from before the restart says anything about the server.
        if !client.isNew { watch.sessionEnded(at: now) }
        client.page.lost(at: now, using: &random)
        let id = client.session.id
        group.addTask { [entrance] in await entrance.forget(id) }
    }

    /// Performs an action of a page: requests a session, or tries its socket.
    private func perform(
        _ action: ReturningPage.Action, _ index: Int, _ client: inout Returner, at now: MonotonicTime,
        _ group: inout DiscardingTaskGroup, using random: inout some RandomNumberGenerator
    ) {
        switch action {
        case .connect:
            client.asks()
            let (ticket, isViewer) = (client.ticket, client.isViewer)
            group.addTask { await self.tell(index, await self.connect(ticket, isViewer: isViewer)) }
        case .openSocket:
            // No socket is opened: by the readiness of the server it is known whether one would be.
            guard client.page.socketTried(isTaken: watch.isReady, at: now, using: &random) else { return }
            let session = client.session
            group.addTask { await self.tell(index, .known(await self.entrance.isKnown(session), session.id)) }
        }
    }

    /// Passes a result to the loop.
    private func tell(_ index: Int, _ one: News) async { news.withLock { $0.append((index, one)) } }

    /// Requests a session; repeats that once with a new token if the old one is refused, as `tokens.js` does.
    private func connect(_ ticket: Entrance.Ticket, isViewer: Bool) async -> News {
        do throws(SignallingError) {
            let next = entrance.next(ticket)
            do throws(SignallingError) {
                return .made(try await entrance.enter(next, isViewer: isViewer), next)
            } catch {
                guard case .refused(401, _, _) = error else { throw error }
                let fresh = try await entrance.renewed(ticket)
                return .made(try await entrance.enter(fresh, isViewer: isViewer), fresh)
            }
        } catch {
            return .failed(error)
        }
    }

    /// Processes the results of requests.
    private func takeNews(
        _ clients: inout [Returner], _ reasons: inout [String: Int],
        using random: inout some RandomNumberGenerator
    ) {
        let taken = news.withLock { news in
            defer { news.removeAll(keepingCapacity: true) }
            return news
        }
        let now = MonotonicClock.now()
        for (index, one) in taken where clients.indices.contains(index) {
            switch one {
            case .made(let session, let ticket): clients[index].take(session, by: ticket)
            case .failed(let error):
                clients[index].page.failed(error, at: now, using: &random)
                Self.count("\(error)", in: &reasons)
            case .known(true, let id): clients[index].keeps(id)
            case .known(false, let id):
                // The client may have lost that session meanwhile, and have another one.
                guard clients[index].session.id == id else { continue }
                log.fail(id, "the server no longer knew the session")
            }
        }
    }

    /// Counts a reason, if need be among the others.
    private static func count(_ reason: String, in reasons: inout [String: Int]) {
        let isRoom = reasons[reason] != nil || reasons.count < mostReasons
        reasons[isRoom ? reason : otherReason, default: 0] += 1
    }
}
