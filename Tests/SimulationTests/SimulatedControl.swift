import Base
import Forwarding
import Peer
import Stage
import Wire

@testable import Node

/// Control as a node has it, over simulated workers: `LiveStreams` decides, and what it wants is done at once.
///
/// Behind it there are no stages, and nothing decodes.
final class SimulatedControl {
    private(set) var live: LiveStreams
    let directory = StreamDirectory()
    /// Is shown each command before a worker has it.
    var onCommand: (WorkerCommand) -> Void = { _ in }
    /// Is shown what streams' stages would be told.
    var onNotice: (StageNotice) -> Void = { _ in }
    private let server: SimulatedServer
    private var nextChoice = MonotonicTime.zero
    private var nextLook = MonotonicTime.zero

    init(over server: SimulatedServer) {
        self.server = server
        var settings = LiveSettings()
        settings.workers = server.workers.count
        live = LiveStreams(directory: directory, settings: settings, feedTag: 1)
    }

    /// Makes a session of an offer.
    func open(
        _ request: SessionRequest, on worker: Int, at now: MonotonicTime
    ) throws -> (id: SessionID, answer: SessionDescription) {
        var actions: [LiveAction] = []
        let (id, _, answer) = try server.open(
            request.offer, for: request.offerPurpose, on: worker, at: now
        ) { id, plan, credentials in
            let candidate = SessionCandidate(
                id: id, request: request, plan: plan, worker: worker, credentials: credentials,
                clearance: nil)
            let admitted = try live.admit(candidate, at: now)
            actions = admitted.actions
            return admitted.opening
        }
        perform(actions, at: now)
        return (id, answer)
    }

    /// Has something decided, and does what follows.
    func change(at now: MonotonicTime, _ body: (inout LiveStreams) -> [LiveAction]) {
        perform(body(&live), at: now)
    }

    /// Takes in what stages told of themselves since the last time.
    func takeNews(at now: MonotonicTime) {
        let news = directory.takeNews()
        change(at: now) { live in live.update(news, at: now) }
    }

    /// Does what is due.
    func advance(to moment: Moment) {
        let now = moment.elapsed
        if let due = live.feed.deadline, due <= now {
            change(at: now) { live in live.inFeed(at: now) { $0.advance(to: moment) } }
        }
        if now >= nextChoice {
            nextChoice = now + StageRoom.interval
            change(at: now) { $0.advanceStages(to: now) }
        }
        if now >= nextLook {
            nextLook = now + .seconds(1)
            change(at: now) { $0.advanceSessions(to: now) }
        }
    }

    private func perform(_ actions: [LiveAction], at now: MonotonicTime) {
        for action in actions { perform(action, at: now) }
    }

    private func perform(_ action: LiveAction, at now: MonotonicTime) {
        switch action {
        case .post(let command, let worker, _): post(command, to: worker, at: now)
        case .postToAll(let command):
            for worker in server.workers.indices { post(command, to: worker, at: now) }
        case .fence(let number, let worker): post(.fence(number), to: worker, at: now)
        case .inject(let opening, let worker):
            post(.openInjection(opening), to: worker, at: now)
            change(at: now) { $0.opened(opening.id, isTaken: true, at: now) }
        case .resume(let step): change(at: now) { $0.resume(step, at: now) }
        case .count(let place): change(at: now) { $0.take(place) }
        case .notify(let notice, _): onNotice(notice)
        case .produce, .programmeChanged, .report: break
        }
    }

    private func post(_ command: WorkerCommand, to worker: Int, at now: MonotonicTime) {
        onCommand(command)
        server.perform(command, on: worker, at: now)
    }
}

/// A simulation in which time passes in steps, because much happens in each.
protocol SteppedSimulation: AnyObject {
    var now: MonotonicTime { get }
    /// Lets one step of time pass, and has everybody do what is due then.
    func step()
}

extension SteppedSimulation {
    /// Lets time pass until `condition` holds, at most `limit`.
    /// - Returns: whether it came to hold.
    @discardableResult
    func run(for limit: Duration, until condition: () -> Bool = { false }) -> Bool {
        let end = now + limit
        while !condition() {
            guard now < end else { return false }
            step()
        }
        return true
    }
}
