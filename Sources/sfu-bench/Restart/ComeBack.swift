import Base
import Foundation
import Net
import Synchronization

/// Lets the clients of a run come back to a server that is restarted, each as a page would.
///
/// One loop for all of them, which looks a hundred times a second: a task or a thread for each would cost the machine
/// what is to be measured. Their connections are on the generator's threads, as in every run.
final class ComeBack: Sendable {
    /// What became of a request.
    private enum News: Sendable {
        case made(Participant, Entrance.Ticket)
        case failed(SignallingError)
        /// Whether the server knows the session with this id.
        case known(Bool, Int)
    }

    private let entrance: Entrance
    private let log: JoinLog
    private let watch: ReadinessWatch
    private let news = Mutex<[(index: Int, news: News)]>([])
    /// Of different reasons; more are counted together.
    private static let mostReasons = 20
    private static let otherReason = "other reasons"
    private static let tick = Duration.milliseconds(10)

    init(_ entrance: Entrance, _ log: JoinLog, _ watch: ReadinessWatch) {
        (self.entrance, self.log, self.watch) = (entrance, log, watch)
    }

    /// Takes care of all of them until all have media again, or `isOver` says so.
    /// - Parameter isOver: asked at each look, with those who are not back.
    func run(_ clients: inout [Returner], reasons: inout [String: Int], until isOver: (Int) -> Bool) async {
        await withDiscardingTaskGroup { group in
            var random = SystemRandomNumberGenerator()
            while true {
                takeNews(&clients, &reasons, using: &random)
                let (now, outage) = (MonotonicClock.now(), watch.seen)
                var missing = 0
                for index in clients.indices {
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
            // Requests that are still under way bring nothing that anybody waits for.
            group.cancelAll()
        }
    }

    /// Sees what happened to a client's session.
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

    private func lose(
        _ client: inout Returner, at now: MonotonicTime, _ group: inout DiscardingTaskGroup,
        using random: inout some RandomNumberGenerator
    ) {
        if !client.isNew { watch.sessionEnded(at: now) }
        client.page.lost(at: now, using: &random)
        let id = client.session.id
        group.addTask { [entrance] in await entrance.forget(id) }
    }

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
            guard client.page.socketTried(isTaken: watch.isReady, at: now, using: &random) else { return }
            let session = client.session
            group.addTask { await self.tell(index, .known(await self.entrance.isKnown(session), session.id)) }
        }
    }

    private func tell(_ index: Int, _ one: News) async { news.withLock { $0.append((index, one)) } }

    /// Asks for a session; once more with a fresh token where the old one is refused, as `tokens.js` does.
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
                // It may have found out by itself meanwhile.
                guard clients[index].session.id == id else { continue }
                log.fail(id, "the server no longer knew the session")
            }
        }
    }

    private static func count(_ reason: String, in reasons: inout [String: Int]) {
        let isRoom = reasons[reason] != nil || reasons.count < mostReasons
        reasons[isRoom ? reason : otherReason, default: 0] += 1
    }
}
