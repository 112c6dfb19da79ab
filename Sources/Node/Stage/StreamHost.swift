import Base
import Interaction
import Restream
import Stage
import Store
import Synchronization

/// Gives one stream's `Stage` a single place to live, and keeps its word: nothing is told before it is durable.
///
/// A command is decided at once, in memory, so that commands cannot interleave; its answer, what followers are told
/// and what has to be done wait until the store has the changes. While one commit is under way the next one gathers.
/// When the store fails, the stage goes back to what is durable, and whoever waited hears of it.
package actor StreamHost {
    /// What a host needs of the world.
    package struct Environment: Sendable {
        let store: any StreamStore
        let log: Log
        let directory: StreamDirectory
        let now: @Sendable () -> Moment
        /// Must not block; called in order.
        let perform: @Sendable (StageEffect, StreamID) -> Void
        /// The same for what duels want.
        let duels: @Sendable (DuelOrder) -> Void
        /// Whether there is room for more of that; where there is none, commands are refused.
        let hasRoom: @Sendable () -> Bool
        /// What to tell webhooks; nil for nothing.
        let report: (@Sendable (StageEvent, StageRecord, WallTime) -> OutboxEvent)?
        /// Who is asked about each comment; nil for nobody.
        let review: CommentReviewer?
        /// Off where a test moves the clock and calls `tick`.
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
    /// Ahead of what is durable while a commit is under way; nil while nobody made the stream.
    var stage: Stage?
    /// What is durable, and what is to become it.
    private var journal: StreamJournal
    private nonisolated let durable = Mutex<StageRecord?>(nil)
    private nonisolated let durableTargets = Mutex(RestreamList())
    private var committing: Task<Void, Never>?
    /// Who is connected; nil for those without a name.
    var connections: [Stage.Connection: Stage.Sender?] = [:]
    /// Connections that were said to send less than they should, and until when that counts; a part of `connections`.
    var weakUplinks: [Stage.Connection: MonotonicTime] = [:]
    var sync: SyncHub
    /// What the audience says and taps.
    var interaction: InteractionDesk
    /// Sessions whose clients are told what the audience does, on their control channels.
    var listeners: [SessionID: UInt64] = [:]
    /// Comments that somebody is asked about, by the audience's numbers for them.
    var reviews: [Int: CommentReview] = [:]
    /// What it plays against other streams.
    var duels: DuelDesk
    /// Where its programme goes on to; ahead of what is durable, as the stage is.
    var restreams = RestreamList()
    private var budget = CommandBudget()
    var preview: StreamPreview?
    var isRecording = false
    /// Whether viewers can go back in it.
    var isKept = false
    private nonisolated let hasClosed = Atomic(false)
    var timer: Task<Void, Never>?
    var timerAt: MonotonicTime?

    /// A stream nobody made yet.
    package init(_ id: StreamID, _ environment: Environment) {
        self.id = id
        self.environment = environment
        journal = StreamJournal(id, report: environment.report)
        let now = environment.now()
        sync = SyncHub(id: id, at: now)
        interaction = InteractionDesk(restoring: InteractionRecord(), at: now)
        duels = DuelDesk(of: id, restoring: [])
    }

    /// A stream as the store knows it.
    /// - Throws: what is wrong with what was stored.
    package init(_ stored: StoredStream, _ environment: Environment) throws {
        id = stored.listing.stream
        self.environment = environment
        let now = environment.now()
        let journal = try StreamJournal(stored, report: environment.report)
        let record = journal.kept
        self.journal = journal
        durable.withLock { $0 = record?.stage }
        stage = record.map { Stage(restoring: $0.stage, at: now) }
        sync = SyncHub(id: id, at: now)
        interaction = InteractionDesk(restoring: record?.interaction ?? InteractionRecord(), at: now)
        duels = DuelDesk(of: id, restoring: record?.duels ?? [])
        restreams = record?.restreams ?? RestreamList()
        durableTargets.withLock { [restreams] in $0 = restreams }
        if let record { sync.view.stream = StreamSnapshot(record.stage) }
    }

    /// What is durable of the stage.
    var committed: StageRecord? { journal.kept?.stage }

    // MARK: Commands

    /// Does what somebody wants.
    /// - Returns: once it is durable and was announced.
    package func perform(_ command: Stage.Command, from sender: Stage.Sender) async throws(StageRefusal)
        -> StageAnswer
    {
        try submit(command, from: sender)
        try await settled()
        return answer(for: sender)
    }

    /// The same without waiting: what follows from it comes in time, or never if the store refuses.
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
        try decide { stage, now throws(Rejection) in
            let outcome = try stage.apply(command, from: sender, at: now)
            isChange = !outcome.changes.isEmpty
            return outcome
        }
        if isChange, let allowance { budget.charge(sender.id, allowance, at: time) }
    }

    var hasRoomToGather: Bool {
        journal.hasRoom && environment.hasRoom()
    }

    /// Makes the stream.
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
        for (connection, sender) in connections {
            _ = stage.connect(sender, by: connection, at: environment.now())
        }
        self.stage = stage
        // What was said in a programme before, under the same name, is not of this one.
        abandonReviews()
        interaction = InteractionDesk(restoring: InteractionRecord(), at: environment.now())
        duels = DuelDesk(of: id, restoring: [])
        restreams = RestreamList()
        lastRefusal = nil
        accept(made.outcome, answer: answer)
        try await settled()
        return snapshot
    }

    /// Somebody wants to publish: a host, a speaker, or by `canCreate` whoever may be one of a stream that is free.
    /// - Returns: what they are there.
    package func beginPublishing(
        _ sender: Stage.Sender, canCreate: Bool
    ) async throws(StageRefusal) -> Stage.Standing {
        let isFree = stage == nil || stage?.record.origin == .published && isOver
        if isFree, canCreate, sender.authority != .viewer {
            // A speaker who is there first waits for a host, whoever that will be.
            let isHost = sender.authority != .speaker
            guard let host = isHost ? sender.id : ParticipantID("host") else { throw .unknownStream }
            _ = try await create(
                host: host, name: isHost ? sender.name : nil, edit: StageEdit(), origin: .published)
        }
        return try await perform(.publish, from: sender).you.standing
    }

    /// Whether somebody may watch now.
    /// - Returns: whether they are there already.
    @discardableResult
    package func admit(_ sender: Stage.Sender?) throws(StageRefusal) -> Bool {
        guard let stage else { return false }
        // Of a published stream it is the media that is waited for.
        if stage.record.origin == .made || refusal(to: sender) != nil {
            do throws(Rejection) {
                try stage.admit(sender)
            } catch {
                throw .rejected(error)
            }
        }
        return sender.map { stage.hasPresence(of: $0.id) } ?? false
    }

    /// What is durable, for those who cannot wait.
    ///
    /// It is known here before the effects of a change are handed on.
    nonisolated var durableRecord: StageRecord? { durable.withLock { $0 } }

    /// The same of where the programme goes on to.
    nonisolated var durableRestreams: RestreamList { durableTargets.withLock { $0 } }

    /// Why somebody may not even look; nil for all others.
    func refusal(to sender: Stage.Sender?) -> Rejection? {
        sender.flatMap { stage?.shutsOut($0) }
    }

    private var isOver: Bool { stage?.record.phase == .ended }

    func answer(for sender: Stage.Sender) -> StageAnswer {
        StageAnswer(
            // What is held back is told with the next one.
            version: sync.version + (sync.isHoldingBack ? 1 : 0),
            you: SyncYou(sender, in: committed, areDoorsOpen: stage?.areDoorsOpen ?? false), stream: snapshot,
            isStageToken: committed?.isStageToken(of: sender) ?? false,
            linkRevocations: committed?.linkRevocations ?? StageRecord.LinkRevocations())
    }

    /// What is known of somebody, without their asking for anything.
    package func look(as sender: Stage.Sender) throws(StageRefusal) -> StageAnswer {
        guard committed != nil else { throw .unknownStream }
        if let rejection = refusal(to: sender) { throw .rejected(rejection) }
        return answer(for: sender)
    }

    /// Who is kept out, for those who may change it.
    package func bans(as sender: Stage.Sender) throws(StageRefusal) -> JSON {
        _ = try look(as: sender)
        guard let committed, committed.isModerator(sender) else { throw .rejected(.notHost) }
        let entries = committed.banned.map { ($0.key.description, JSON.object(["since": .time($0.value)])) }
        return .object(["bans": .object(Dictionary(uniqueKeysWithValues: entries))])
    }

    /// What everybody may know now.
    package var snapshot: StreamSnapshot {
        var snapshot = sync.view.stream
        snapshot.version = sync.version
        return snapshot
    }

    // MARK: Deciding

    /// Lets the stage decide, and sees to what follows.
    func decide(
        _ body: (inout Stage, Moment) throws(Rejection) -> StageOutcome
    ) throws(StageRefusal) {
        guard !isClosed else { throw .overloaded }
        guard var stage else { throw .unknownStream }
        lastRefusal = nil
        // Not two copies, or every change would copy the stage.
        self.stage = nil
        let outcome: StageOutcome
        do throws(Rejection) {
            outcome = try body(&stage, environment.now())
            self.stage = stage
        } catch {
            self.stage = stage
            throw .rejected(error)
        }
        accept(outcome)
    }

    private func accept(
        _ outcome: StageOutcome, answer: (key: IdempotencyKey, value: IdempotentAnswer)? = nil
    ) {
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
        // What changes nothing by itself still must not overtake what it was decided on.
        gather { batch in
            batch.append(outcome)
            if let answer { batch.answer = answer }
            batch.changes += last + duel.changes
            batch.duels += duel.reports
        }
    }

    private func gather(_ change: (inout CommitBatch) -> Void) {
        journal.gather(change)
        startCommit()
    }

    /// Takes in what the audience did, or what became of a duel; nothing of it concerns the stage.
    func enter(_ changes: [StreamChange], reporting duels: [CommitBatch.DuelReport] = []) {
        defer { scheduleTick() }
        lastRefusal = nil
        guard !changes.isEmpty else {
            tellInteraction()
            return
        }
        gather { batch in
            batch.changes += changes
            batch.duels += duels
        }
    }

    /// Has webhooks told of a recording that is complete.
    package func report(recording: JSON) {
        guard journal.reportsEvents, committed != nil, !isClosed else { return }
        gather { $0.recordings.append(recording) }
    }

    /// Has webhooks told of a clip that is complete.
    func report(clip: JSON) {
        guard journal.reportsEvents, committed != nil, !isClosed else { return }
        gather { $0.clips.append(clip) }
    }

    /// Has webhooks told how a target of the programme does.
    func report(restream: JSON, as type: String) {
        guard journal.reportsEvents, committed != nil, !isClosed else { return }
        gather { $0.restreams.append(CommitBatch.RestreamReport(type: type, restream: restream)) }
    }

    /// Waits until all that was decided so far is durable.
    package func settled() async throws(StageRefusal) {
        let refusal = await withCheckedContinuation { continuation in
            whenSettled { continuation.resume(returning: $0) }
        }
        if let refusal { throw refusal }
    }

    /// The same for those who cannot wait: called once, with nil where it is durable.
    func whenSettled(_ waiter: @escaping CommitBatch.Waiter) {
        if journal.wait(waiter) { return }
        let refusal = lastRefusal
        lastRefusal = nil
        waiter(refusal)
    }

    /// Of a commit that was refused before anybody could wait for it.
    private var lastRefusal: StageRefusal?

    // MARK: Committing

    private func startCommit() {
        switch journal.advance(at: environment.now().wall) {
        case nil: break
        case .conclude(let batch): conclude(batch)
        case .fail(let batch, let reason):
            environment.log.error("stage.unwritable", ["stream": id, "error": reason])
            fail([batch], .storage("the changes cannot be written"))
        case .commit(let commit):
            let outcome = CommitOutcome()
            environment.store.submit(commit) { outcome.complete($0) }
            if let result = outcome.present {
                finishCommit(result)
            } else {
                committing = Task { finishCommit(await outcome.value()) }
            }
        }
    }

    private func finishCommit(_ result: Result<Void, StoreError>) {
        switch journal.finish(result) {
        case nil: return
        case .success(let batch):
            durable.withLock { $0 = committed }
            durableTargets.withLock { $0 = journal.kept?.restreams ?? RestreamList() }
            conclude(batch)
            startCommit()
        case .failure(let batches, let error):
            environment.log.error("stage.commit-failed", ["stream": id, "error": "\(error)"])
            if case .conflict = error { close(.unavailable) }
            fail(batches, .storage("\(error)"))
        }
        scheduleTick()
    }

    /// Tells and does what is durable now.
    private func conclude(_ batch: CommitBatch) {
        let (ofStage, ofInteraction) = (
            batch.changes.compactMap(\.ofStage), batch.changes.compactMap(\.ofInteraction)
        )
        announce(about: ofStage)
        if let kept = journal.kept, !ofInteraction.isEmpty {
            interaction.conclude(ofInteraction, kept.interaction)
        }
        if let kept = journal.kept, batch.changes.contains(where: \.isOfDuel) { duels.conclude(kept.duels) }
        tellInteraction()
        for effect in batch.effects { carryOut(effect) }
        for waiter in batch.waiters { waiter(nil) }
    }

    /// Goes back to what is durable.
    private func fail(_ batches: [CommitBatch], _ refusal: StageRefusal) {
        if let kept = journal.kept {
            stage?.revert(to: kept.stage, at: environment.now())
            interaction.revert(to: kept.interaction)
            duels.revert(to: kept.duels)
            restreams = kept.restreams
        } else {
            stage = nil
        }
        announce()
        let waiters = batches.flatMap(\.waiters)
        // Refused at once: whoever asked has not begun to wait.
        if waiters.isEmpty { lastRefusal = refusal }
        for waiter in waiters { waiter(refusal) }
    }

    private func carryOut(_ effect: StageEffect) {
        switch effect {
        case .requestMute(let id, let kind, let sender): sync.deliverMute(kind, to: id, from: sender)
        case .expel(let id, let reason):
            for follower in sync.expel(id, as: reason == .banned ? .banned : .removed) {
                connections[.socket(follower)] = nil
            }
        case .showMute, .setProgramme, .retire, .close: break
        }
        environment.perform(effect, id)
    }

    // MARK: The end

    /// Whether it takes nothing more; a host that has closed does not open again.
    nonisolated var isClosed: Bool { hasClosed.load(ordering: .relaxed) }

    /// Sends all followers away and takes nothing more.
    package func close(_ reason: SyncClose) {
        hasClosed.store(true, ordering: .relaxed)
        timer?.cancel()
        timer = nil
        abandonReviews()
        sync.closeAll(reason)
    }

    /// What a host was the place of that closed.
    package enum IdleStream: Sendable {
        /// A stream that has ended.
        case ended
        /// A name that was waited for, and that nobody made.
        case unmade
    }

    /// Closes if nothing would be lost by it.
    package func closeIfIdle() -> IdleStream? {
        guard connections.isEmpty, sync.isEmpty, journal.isSettled else { return nil }
        if let stage, stage.record.phase != .ended { return nil }
        close(.goingAway)
        return committed == nil ? .unmade : .ended
    }
}
