import Base
import Interaction
import Restream
import Stage
import Store
import Synchronization

/// Owns one stream's `Stage`, and announces nothing before it is durable.
///
/// A command is decided immediately, in memory, so commands cannot interleave. Its answer, the news for followers and
/// its effects wait until the store has the changes. While one commit is in flight, the next one gathers. If the
/// store fails, the stage returns to its durable state, and every waiting request gets the failure.
package actor StreamHost {
    /// The services that a host uses.
    package struct Environment: Sendable {
        let store: any StreamStore
        let log: Log
        let directory: StreamDirectory
        let now: @Sendable () -> Moment
        /// Performs an effect; called in order, must not block.
        let perform: @Sendable (StageEffect, StreamID) -> Void
        /// The same for the orders of duels.
        let duels: @Sendable (DuelOrder) -> Void
        /// Whether more effects can be queued; if not, commands are refused.
        let hasRoom: @Sendable () -> Bool
        /// Makes a webhook event; nil without webhooks.
        let report: (@Sendable (StageEvent, StageRecord, WallTime) -> OutboxEvent)?
        /// Reviews each comment; nil to show comments without a review.
        let review: CommentReviewer?
        /// False in tests that move the clock and call `tick`.
        let runsTimer: Bool

        package init(
            store: any StreamStore, log: Log, directory: StreamDirectory,
            now: @escaping @Sendable () -> Moment, runsTimer: Bool = true,
            report: (@Sendable (StageEvent, StageRecord, WallTime) -> OutboxEvent)? = nil,
            review: CommentReviewer? = nil,
            hasRoom: @escaping @Sendable () -> Bool = { true },
            duels: @escaping @Sendable (DuelOrder) -> Void = { _ in },
            perform: @escaping @Sendable (StageEffect, StreamID) -> Void
        ) {
            self.store = store
            self.log = log
            self.directory = directory
            self.now = now
            self.runsTimer = runsTimer
            self.report = report
            self.review = review
            self.perform = perform
            self.duels = duels
            self.hasRoom = hasRoom
        }
    }

    /// The stream's name.
    package nonisolated let id: StreamID
    let environment: Environment
    /// Ahead of the durable state while a commit is in flight; nil while the stream is not made.
    var stage: Stage?
    /// The durable state, and what is on its way there.
    private(set) var journal: StreamJournal
    /// Copies of the durable record and targets, which callers read without waiting for the actor.
    private nonisolated let durable = Mutex<Durable>((nil, RestreamList()))
    private var committing: Task<Void, Never>?
    /// The connections of participants; the inner nil stands for an anonymous viewer.
    var connections: [Stage.Connection: Stage.Sender?] = [:]
    /// Connections with a weak uplink, and when that report expires; a subset of `connections`.
    var weakUplinks: [Stage.Connection: MonotonicTime] = [:]
    var sync: SyncHub
    /// The comments, reactions, polls and gifts of the audience.
    var interaction: InteractionDesk
    /// Sessions whose clients receive the audience's news on their control channels, by follower number.
    var listeners: [SessionID: UInt64] = [:]
    /// Comments under review, by the audience's numbers for them.
    var reviews: [Int: CommentReview] = [:]
    /// The stream's duels with other streams.
    var duels: DuelDesk
    /// The programme's targets; ahead of the durable state, as `stage` is.
    var restreams = RestreamList()
    /// Webhooks of complete files that the store has refused so far.
    var refusedReports = FileReports()
    private var budget = CommandBudget()
    var preview: StreamPreview?
    /// Whether the stream is being recorded; nil before this host has been told.
    var isRecording: Bool?
    /// Whether viewers can go back in the stream.
    var isKept = false
    /// What was decided about sessions and is not handled yet; see `put`.
    nonisolated let notices = Mutex<[(StageNotice, ControlEnd?)]>([])
    nonisolated let door = HostDoor()
    var timer: Task<Void, Never>?
    var timerAt: MonotonicTime?

    /// A stream that is not made yet.
    package init(_ id: StreamID, _ environment: Environment) {
        self.id = id
        self.environment = environment
        journal = StreamJournal(id, report: environment.report)
        let now = environment.now()
        sync = SyncHub(id: id, at: now)
        interaction = InteractionDesk(restoring: InteractionRecord(), at: now)
        duels = DuelDesk(of: id, restoring: [])
    }

    /// A stream from the store.
    /// - Throws: if the stored bytes cannot be decoded.
    package init(_ stored: StoredStream, _ environment: Environment) throws {
        id = stored.listing.stream
        self.environment = environment
        let now = environment.now()
        let journal = try StreamJournal(stored, report: environment.report)
        let record = journal.kept
        self.journal = journal
        stage = record.map { Stage(restoring: $0.stage, at: now) }
        sync = SyncHub(id: id, at: now)
        interaction = InteractionDesk(restoring: record?.interaction ?? InteractionRecord(), at: now)
        duels = DuelDesk(of: id, restoring: record?.duels ?? [])
        restreams = record?.restreams ?? RestreamList()
        durable.withLock { [restreams] in $0 = (record?.stage, restreams) }
        if let record { sync.view.stream = StreamSnapshot(record.stage) }
    }

    /// The durable state of the stage; nil while the stream is not made.
    var committed: StageRecord? { journal.kept?.stage }

    // MARK: Commands

    /// Performs a command.
    /// - Returns: the answer, once the result is durable and announced.
    package func perform(_ command: Stage.Command, from sender: Stage.Sender) async throws(StageRefusal)
        -> StageAnswer
    {
        try submit(command, from: sender)
        try await settled()
        return answer(for: sender)
    }

    /// Decides a command without waiting: its result is announced later, or never if the store fails.
    /// - Throws: the stage's refusal, or the store's if it refuses at once.
    package func submit(_ command: Stage.Command, from sender: Stage.Sender) throws(StageRefusal) {
        guard hasRoomToGather else { throw .overloaded }
        let allowance = stage.flatMap { CommandBudget.Allowance(of: sender, in: $0) }
        let time = environment.now().elapsed
        if let allowance, let standing = stage?.standing(of: sender), command.canWait(for: standing),
            let wait = budget.wait(of: sender.id, allowance, at: time)
        {
            throw .tooManyCommands(wait: wait)
        }
        var isChange = false
        // Also what the store refuses counts, because it costs as much.
        defer { if isChange, let allowance { budget.charge(sender.id, allowance, at: time) } }
        try decide { stage, now throws(Rejection) in
            let outcome = try stage.apply(command, from: sender, at: now)
            isChange = !outcome.changes.isEmpty
            return outcome
        }
    }

    /// Whether commands are accepted: neither the store nor the queue of effects is too far behind.
    var hasRoomToGather: Bool {
        journal.hasRoom && environment.hasRoom()
    }

    /// Creates the stream, or creates it again after a published one has ended.
    package func create(
        host: ParticipantID, name: String?, edit: StageEdit, origin: StageRecord.Origin = .made,
        answer: (key: IdempotencyKey, value: IdempotentAnswer)? = nil
    ) async throws(StageRefusal) -> StreamSnapshot {
        guard stage == nil || origin == .published && stage?.record.origin == .published && isOver else {
            throw .streamExists
        }
        guard !isClosed else { throw .overloaded }
        let made: (stage: Stage, outcome: StageOutcome)
        do throws(Rejection) {
            made = try Stage.create(
                id, origin: origin, host: host, hostName: name, edit: edit, at: environment.now())
        } catch {
            throw .rejected(error)
        }
        var stage = made.stage
        // Viewers may have connected before the stream was made.
        for (connection, sender) in connections {
            _ = stage.connect(sender, by: connection, at: environment.now())
        }
        self.stage = stage
        // Comments of an earlier programme under the same name do not belong to this one.
        abandonReviews()
        interaction = InteractionDesk(restoring: InteractionRecord(), at: environment.now())
        duels = DuelDesk(of: id, restoring: [])
        restreams = RestreamList()
        try accept(made.outcome, answer: answer)
        try await settled()
        return snapshot
    }

    /// Admits a publisher: the host, a speaker, or with `canCreate` anyone who may be the host of an unused name.
    /// - Returns: the publisher's standing.
    package func beginPublishing(
        _ sender: Stage.Sender, canCreate: Bool
    ) async throws(StageRefusal) -> Stage.Standing {
        let isFree = stage == nil || stage?.record.origin == .published && isOver
        if isFree, canCreate, sender.authority != .viewer {
            // A speaker who comes first waits for a host, who is not known yet.
            let isHost = sender.authority != .speaker
            guard let host = isHost ? sender.id : ParticipantID("host") else { throw .unknownStream }
            _ = try await create(
                host: host, name: isHost ? sender.name : nil, edit: StageEdit(), origin: .published)
        }
        return try await perform(.publish, from: sender).you.standing
    }

    /// Checks that a viewer may watch now; nil stands for an anonymous viewer.
    /// - Returns: whether the viewer is present already.
    @discardableResult
    package func admit(_ sender: Stage.Sender?) throws(StageRefusal) -> Bool {
        guard let stage else { return false }
        // A published stream admits viewers at any time: they wait for its media.
        if stage.record.origin == .made || refusal(to: sender) != nil {
            do throws(Rejection) {
                try stage.admit(sender)
            } catch {
                throw .rejected(error)
            }
        }
        return sender.map { stage.hasPresence(of: $0.id) } ?? false
    }

    /// The durable record, without waiting for the actor; set before a change's effects are performed.
    nonisolated var durableRecord: StageRecord? { durableState.record }

    /// The same with the programme's targets, as of one moment.
    nonisolated var durableState: Durable { durable.withLock { $0 } }

    typealias Durable = (record: StageRecord?, restreams: RestreamList)

    /// Why a participant may not even follow the stream; nil if they may.
    func refusal(to sender: Stage.Sender?) -> Rejection? {
        sender.flatMap { stage?.shutsOut($0) }
    }

    private var isOver: Bool { stage?.record.phase == .ended }

    func answer(for sender: Stage.Sender) -> StageAnswer {
        StageAnswer(
            // News that are held back get the next version.
            version: sync.version + (sync.isHoldingBack ? 1 : 0),
            you: SyncYou(sender, in: committed, areDoorsOpen: stage?.areDoorsOpen ?? false), stream: snapshot,
            isStageToken: committed?.isStageToken(of: sender) ?? false,
            linkRevocations: committed?.linkRevocations ?? StageRecord.LinkRevocations())
    }

    /// Returns what a sender may know, without performing a command.
    package func look(as sender: Stage.Sender) throws(StageRefusal) -> StageAnswer {
        guard committed != nil else { throw .unknownStream }
        if let rejection = refusal(to: sender) { throw .rejected(rejection) }
        return answer(for: sender)
    }

    /// The banned participants, for senders who may lift bans.
    package func bans(as sender: Stage.Sender) throws(StageRefusal) -> JSON {
        _ = try look(as: sender)
        guard let committed, committed.isModerator(sender) else { throw .rejected(.notHost) }
        let entries = committed.banned.map { ($0.key.description, JSON.object(["since": .time($0.value)])) }
        return .object(["bans": .object(Dictionary(uniqueKeysWithValues: entries))])
    }

    /// The public state as it was announced last, with its version.
    package var snapshot: StreamSnapshot {
        var snapshot = sync.view.stream
        snapshot.version = sync.version
        return snapshot
    }

    // MARK: Deciding

    /// Runs a decision on the stage and gathers its outcome.
    /// - Throws: `overloaded`, `unknownStream`, the stage's rejection, or the store's refusal if it refuses at once.
    func decide(
        _ body: (inout Stage, Moment) throws(Rejection) -> StageOutcome
    ) throws(StageRefusal) {
        guard !isClosed else { throw .overloaded }
        guard var stage else { throw .unknownStream }
        // Keeps the reference unique: otherwise every change would copy the stage.
        self.stage = nil
        let outcome: StageOutcome
        do throws(Rejection) {
            outcome = try body(&stage, environment.now())
            self.stage = stage
        } catch {
            self.stage = stage
            throw .rejected(error)
        }
        try accept(outcome)
    }

    /// Gathers an outcome for the next commit, or announces it now if nothing in it or before it has to be durable.
    private func accept(
        _ outcome: StageOutcome, answer: (key: IdempotencyKey, value: IdempotentAnswer)? = nil
    ) throws(StageRefusal) {
        defer { scheduleTick() }
        sync.isAudienceChanged = true
        let isForStore = !outcome.changes.isEmpty || journal.reportsEvents && !outcome.events.isEmpty
        guard isForStore || !journal.isSettled else {
            for effect in outcome.effects { carryOut(effect) }
            announce()
            return
        }
        let isOver = outcome.changes.contains { if case .ended = $0 { true } else { false } }
        let last = isOver ? interaction.advance(to: environment.now(), isLast: true) : []
        let duel = isOver ? endDuel() : (changes: [], reports: [])
        if isOver { restreams = RestreamList() }
        // An outcome without changes must not overtake the changes that it was decided on.
        try gather { batch in
            batch.append(outcome)
            if let answer { batch.answer = answer }
            batch.changes += last + duel.changes
            batch.duels += duel.reports
        }
    }

    /// Adds to the next commit, and starts it unless one is in flight.
    /// - Throws: the store's refusal, if it refuses at once. A later one goes to those who wait by `whenSettled`.
    func gather(_ change: (inout CommitBatch) -> Void) throws(StageRefusal) {
        journal.gather(change)
        if let refusal = startCommit() { throw refusal }
    }

    /// Gathers changes by the audience or of a duel, which do not concern the stage.
    /// - Throws: the store's refusal, if it refuses at once; the changes are taken back then.
    func enter(
        _ changes: [StreamChange], reporting duels: [CommitBatch.DuelReport] = []
    ) throws(StageRefusal) {
        defer { scheduleTick() }
        guard !changes.isEmpty else {
            tellInteraction()
            return
        }
        try gather { batch in
            batch.changes += changes
            batch.duels += duels
        }
    }

    /// Waits until everything that was decided so far is durable.
    package func settled() async throws(StageRefusal) {
        let refusal = await withCheckedContinuation { continuation in
            whenSettled { continuation.resume(returning: $0) }
        }
        if let refusal { throw refusal }
    }

    /// The same for callers that cannot wait: called once, with nil if everything is durable.
    ///
    /// Of what the store refused at once, the caller who decided it knows already; nobody else is concerned.
    func whenSettled(_ waiter: @escaping CommitBatch.Waiter) {
        if !journal.wait(waiter) { waiter(nil) }
    }

    // MARK: Committing

    /// Hands what has gathered to the store, unless a commit is in flight.
    /// - Returns: why that is refused at once; nil if it is not.
    @discardableResult
    private func startCommit() -> StageRefusal? {
        switch journal.advance(at: environment.now().wall) {
        case nil: return nil
        case .conclude(let batch):
            conclude(batch)
            return nil
        case .fail(let batch, let reason):
            environment.log.error("stage.unwritable", ["stream": id, "error": reason])
            return fail([batch], .storage("the changes cannot be written"))
        case .commit(let commit):
            let outcome = CommitOutcome()
            environment.store.submit(commit) { outcome.complete($0) }
            if let result = outcome.present { return finishCommit(result) }
            committing = Task { _ = finishCommit(await outcome.value()) }
            return nil
        }
    }

    /// - Returns: why the commit was refused; nil if it is durable.
    @discardableResult
    private func finishCommit(_ result: Result<Void, StoreError>) -> StageRefusal? {
        defer { scheduleTick() }
        switch journal.finish(result) {
        case nil: return nil
        case .success(let batch):
            durable.withLock { $0 = (committed, journal.kept?.restreams ?? RestreamList()) }
            refusedReports.noteStored(at: environment.now().elapsed)
            conclude(batch)
            startCommit()
            return nil
        case .failure(let batches, let error):
            environment.log.error("stage.commit-failed", ["stream": id, "error": "\(error)"])
            // The record has another version than this host knows, so the host cannot continue.
            if case .conflict = error { close(.unavailable) }
            return fail(batches, .storage("\(error)"))
        }
    }

    /// Announces and performs a durable batch: followers first, then effects, then the waiting requests.
    private func conclude(_ batch: CommitBatch) {
        // Another programme may have begun under the same name since; its audience and its duels are its own.
        let (former, present) = batch.programmes(isOver: journal.isBeginningAnew)
        let isAnew = batch.isCreation && sync.view.stream.createdAt != nil
        if isAnew { preview = nil }
        announce(about: batch.changes.compactMap(\.ofStage))
        if let kept = journal.kept {
            let ofInteraction = present.compactMap(\.ofInteraction)
            if !ofInteraction.isEmpty { interaction.conclude(ofInteraction, kept.interaction) }
            if present.contains(where: \.isOfDuel) { duels.conclude(kept.duels) }
        }
        tellFormerDuels(former)
        if isAnew {
            sync.interaction = interaction.describe(at: environment.now().elapsed)
            sync.tellAudience()
        }
        tellInteraction()
        for effect in batch.effects { carryOut(effect) }
        for waiter in batch.waiters { waiter(nil) }
    }

    /// Returns to the durable state, and refuses the batches.
    /// - Returns: the refusal.
    private func fail(_ batches: [CommitBatch], _ refusal: StageRefusal) -> StageRefusal {
        refusedReports.keep(batches, at: environment.now().elapsed)
        if let kept = journal.kept {
            let counts = stage?.counts
            stage?.revert(to: kept.stage, at: environment.now())
            // A removal that was not stored has taken them out of the stage's presence; they are still connected.
            for case (let connection, let sender?) in connections {
                _ = stage?.connect(sender, by: connection, at: environment.now())
            }
            if stage?.counts != counts { sync.isAudienceChanged = true }
            interaction.revert(to: kept.interaction)
            duels.revert(to: kept.duels, at: environment.now().elapsed)
            restreams = kept.restreams
        } else {
            stage = nil
            // Without a stage there is nobody to count, and nothing else would end the wait for that.
            sync.isAudienceChanged = false
        }
        announce()
        for waiter in batches.flatMap(\.waiters) { waiter(refusal) }
        return refusal
    }

    private func carryOut(_ effect: StageEffect) {
        switch effect {
        case .requestMute(let id, let kind, let sender): sync.deliverMute(kind, to: id, from: sender)
        case .expel(let id, let reason):
            for follower in sync.expel(id, as: reason == .banned ? .banned : .removed) {
                connections[.socket(follower)] = nil
                // They may have come again before the removal was durable.
                stage?.disconnect(id, by: .socket(follower), at: environment.now())
                sync.isAudienceChanged = true
            }
        case .showMute, .setProgramme, .retire, .close: break
        }
        environment.perform(effect, id)
    }

    // MARK: The end

    /// Whether the host accepts nothing any more; a closed host does not open again.
    nonisolated var isClosed: Bool { door.isClosed }

    /// Closes all followers' connections and accepts nothing any more.
    package func close(_ reason: SyncClose) {
        door.close()
        timer?.cancel()
        timer = nil
        abandonReviews()
        sync.closeAll(reason)
    }

    /// Why a host was idle.
    package enum IdleStream: Sendable {
        /// The stream has ended.
        case ended
        /// Clients waited for the name, but the stream was never made.
        case unmade
    }

    /// Closes the host if no participant is connected, no change is pending and the stream is not in progress.
    /// - Parameter arrivals: how many had entered by `door` when the stream had no sessions; nil for now.
    package func closeIfIdle(since arrivals: UInt64? = nil) -> IdleStream? {
        // Closed by a conflict: nothing happens here any more, and whoever comes next reads the stream anew. Until
        // then it keeps the reports for the next host.
        guard !isClosed else { return refusedReports.isEmpty ? .ended : nil }
        takeNotices()
        guard connections.isEmpty, sync.isEmpty, journal.isSettled, refusedReports.isEmpty else { return nil }
        if let stage, stage.record.phase != .ended { return nil }
        // Only this host announces that these end, which may be later than the stream.
        guard isRecording != true, !isKept, door.close(since: arrivals) else { return nil }
        close(.goingAway)
        return committed == nil ? .unmade : .ended
    }
}
