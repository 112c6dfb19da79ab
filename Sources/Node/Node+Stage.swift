import Base
import Crypto
import Foundation
import Interaction
import Stage
import Store

/// Streams by name: creation, lookup, requests to their stages, and followers.
extension Node {
    // MARK: Finding

    /// Loads from the store all streams that have not ended, and the list entries of those that have.
    ///
    /// Call it once, before `start`. A stream that cannot be decoded is logged and left out.
    package func load() async throws(StoreError) {
        for stored in try await registry.store.load(.open) {
            do {
                let host = try StreamHost(stored, registry.environment)
                registry.add(host)
                directory.update(await host.snapshot)
                await host.tick()
            } catch {
                log.error("stream.unreadable", ["stream": stored.listing.stream, "error": "\(error)"])
            }
        }
        var query = StreamQuery()
        query.states = [StreamState.ended.rawValue]
        query.limit = 1_000
        var count = 0
        // Ended streams are read in pages, without their stages: lists need only what a listing contains.
        while count < StreamRegistry.endedLimit {
            let page = try await registry.store.list(query)
            for listing in page where registry[listing.stream] == nil {
                var snapshot = StreamSnapshot(listing)
                // A listing does not say how the stream was made.
                snapshot.mayBeginAnew = configuration.createsStreamsOnPublish
                directory.update(snapshot)
            }
            guard let last = page.last, page.count == query.limit else { break }
            count += page.count
            query.after = (last.createdAt, last.stream)
        }
        log.info("streams.loaded", ["open": registry.count])
    }

    /// The stage of a stream that exists or that a client waits for; nil for any other name.
    ///
    /// - Parameter isStranger: whether the client has no token. Such clients may cause few lookups in the store at a
    ///   time.
    /// - Throws: `.overloaded` if too much is in memory or being looked up, `.storage` if the store fails.
    package func knownHost(
        of id: StreamID, isStranger: Bool = false
    ) async throws(StageRefusal) -> StreamHost? {
        // A node that stops answers for what is in memory, and reads nothing more from the store.
        guard !isStopping || registry[id]?.isClosed == false else { throw .overloaded }
        switch try registry.place(of: id, isStranger: isStranger) {
        case .open(let host): return host
        case .absent: return nil
        case .lookup(let lookup):
            let found: StreamHost?
            do {
                found = try await lookup.value
            } catch {
                registry.abandon(lookup, of: id)
                throw .storage("\(error)")
            }
            let former = registry[id]
            let host = registry.settle(lookup, of: id, found: found)
            await introduce(host, after: former)
            return host
        }
    }

    /// Tells a stream's new host of the sessions that the closed host before it knew.
    ///
    /// A host closes while sessions go on if the store has another version of its stream.
    private func introduce(_ host: StreamHost?, after former: StreamHost?) async {
        guard let host, let former, former !== host, registry[host.id] === host else { return }
        // Queued before anything is awaited, so that no later notice comes before these.
        for notice in live.presence(in: host.id) { host.put(notice, answering: nil) }
        for id in await former.listeners.keys {
            guard let record = live.sessions[id] else { continue }
            host.put(.follow(record.request.sender, id), answering: controlEnd(of: id))
        }
        await host.takeNotices()
        await host.inheritRecording(await former.isRecording)
        await host.inherit(await former.handOverReports())
    }

    /// The stage of a stream, made if there is none: for clients that may create the stream or wait until it is
    /// created.
    package func host(
        of id: StreamID, isStranger: Bool = false
    ) async throws(StageRefusal) -> StreamHost {
        if let host = try await knownHost(of: id, isStranger: isStranger) { return host }
        guard !isStopping else { throw .overloaded }
        return try await make(id)
    }

    /// Makes the host of a name that is not in use, which takes over the sessions that wait for the name.
    func make(_ id: StreamID) async throws(StageRefusal) -> StreamHost {
        let former = registry[id]
        let host = try registry.make(id)
        await introduce(host, after: former)
        return host
    }

    /// Opens streams again whose hosts have closed while sessions go on, or while webhooks wait, even if no request
    /// comes for them.
    func reopenStreams() async {
        for host in registry.all where host.isClosed {
            let hasReports = await !host.refusedReports.isEmpty
            guard hasReports || live[host.id] != nil else { continue }
            do throws(StageRefusal) {
                // Of a stream that is gone there is nothing to report.
                if try await knownHost(of: host.id) == nil { _ = await host.handOverReports() }
            } catch {
                // Nobody waits for it: the next second tries again.
                continue
            }
        }
    }

    /// The stage of a stream that was created.
    /// - Throws: `.unknownStream` if the stream does not exist, or was never made durable.
    func madeHost(of id: StreamID, isStranger: Bool = false) async throws(StageRefusal) -> StreamHost {
        guard let host = try await knownHost(of: id, isStranger: isStranger), await host.committed != nil
        else {
            throw .unknownStream
        }
        return host
    }

    /// The stage of a stream that was created, or that publishing may create if the node is configured for that.
    func place(of id: StreamID, isStranger: Bool) async throws(StageRefusal) -> StreamHost {
        guard configuration.createsStreamsOnPublish else {
            return try await madeHost(of: id, isStranger: isStranger)
        }
        return try await host(of: id, isStranger: isStranger)
    }

    /// A page of the list of streams, read without waiting for an actor.
    package nonisolated func streamPage(
        after place: StreamSnapshot.ListOrder?, limit: Int, isOnlyLive: Bool,
        where isWanted: (StreamSnapshot) -> Bool
    ) -> StreamDirectory.Page {
        directory.page(after: place, limit: limit, isOnlyLive: isOnlyLive, where: isWanted)
    }

    /// Snapshots of all streams, in no particular order.
    package nonisolated var streamSnapshots: [StreamSnapshot] { directory.everything }

    /// Nil for a stream that does not exist and has no session waiting for it.
    package func streamSnapshot(_ id: StreamID) async -> StreamSnapshot? {
        if let host = registry[id] {
            let snapshot = await host.snapshot
            // Without a time of creation, the name is only waited for, which counts as long as there is a session.
            return snapshot.createdAt != nil || live[id] != nil ? snapshot : nil
        }
        return directory[id]
    }

    // MARK: Asking

    /// A request to create a stream.
    package struct StreamCreation: Sendable {
        /// Nil to have the server choose one.
        package let id: StreamID?
        /// The owner of the stream, who is its host from the beginning.
        package let host: ParticipantID
        /// The host's name as people see it; nil to show the identity.
        package let hostName: String?
        /// The settings that differ from the defaults.
        package let edit: StageEdit
        /// The client's own key and the bytes of its request, to recognize a repetition; nil if the client gave no
        /// key.
        package let idempotency: (key: IdempotencyKey, request: [UInt8])?

        package init(
            id: StreamID?, host: ParticipantID, hostName: String?, edit: StageEdit,
            idempotency: (key: IdempotencyKey, request: [UInt8])? = nil
        ) {
            self.id = id
            self.host = host
            self.hostName = hostName
            self.edit = edit
            self.idempotency = idempotency
        }
    }

    /// Creates a stream; a request that is repeated with the same key creates it only once.
    /// - Throws: `.busy` while the same key is being handled, `.keyReused` if the key came with another request,
    ///   `.unknownStream` if the stream of the first request is gone, or what the stage or the store reports.
    package func createStream(_ creation: StreamCreation) async throws(StageRefusal) -> StreamSnapshot {
        guard let (key, request) = creation.idempotency else {
            return try await create(creation, answer: nil)
        }
        guard registry.begin(key) else { throw .busy }
        defer { registry.end(key) }
        // Used as a plain hash: 32 bytes are stored instead of the request, and the key need not be secret.
        let digest = HMAC.sha256(key: Array("rostrum".utf8).span, request.span)
        let time = now().wall
        let earlier: IdempotentAnswer?
        do throws(StoreError) {
            earlier = try await registry.store.answer(to: key, at: time.milliseconds)
        } catch {
            throw .storage("\(error)")
        }
        // The answer is stored in the same commit as the stream, so that a crash cannot leave one without the other.
        guard let earlier else {
            let expiry = time.advanced(bySeconds: Self.answerLifetime).milliseconds
            return try await create(creation) { id in
                let answer = Array(id.description.utf8)
                return (key, IdempotentAnswer(request: digest, answer: answer, expiresAt: expiry))
            }
        }
        guard earlier.request == digest else { throw .keyReused }
        guard let id = StreamID(String(decoding: earlier.answer, as: UTF8.self)),
            let snapshot = await streamSnapshot(id)
        else { throw .unknownStream }
        return snapshot
    }

    /// - Parameter answer: what to store with the new stream, for repetitions of the request.
    private func create(
        _ creation: StreamCreation,
        answer: (@Sendable (StreamID) -> (key: IdempotencyKey, value: IdempotentAnswer))?
    ) async throws(StageRefusal) -> StreamSnapshot {
        let id = if let id = creation.id { id } else { try makeStreamID() }
        let host = try await host(of: id)
        return try await host.create(
            host: creation.host, name: creation.hostName, edit: creation.edit, answer: answer?(id))
    }

    /// A stream ID of 60 random bits, which cannot be guessed and does not repeat.
    private func makeStreamID() throws(StageRefusal) -> StreamID {
        // 32 characters, so five bits each; without those that are easily confused: l, o, 0 and 1.
        let alphabet = Array("abcdefghijkmnpqrstuvwxyz23456789")
        let letters = (0..<12).map { _ in alphabet[Int.random(in: 0..<alphabet.count, using: &random)] }
        guard let id = StreamID(String(letters)) else { throw .overloaded }
        return id
    }

    /// Applies a participant's command to a stream's stage.
    /// - Returns: the answer, once the change is durable.
    package func perform(
        _ command: Stage.Command, in stream: StreamID, from sender: Stage.Sender
    ) async throws(StageRefusal) -> StageAnswer {
        try await madeHost(of: stream).perform(command, from: sender)
    }

    /// The role of a participant in a stream, and the stream as that participant sees it.
    package func look(at stream: StreamID, as sender: Stage.Sender) async throws(StageRefusal) -> StageAnswer
    {
        try await madeHost(of: stream).look(as: sender)
    }

    /// Whether a participant who is not in a stream yet is kept out of it, read without waiting for an actor.
    package nonisolated func isShutOut(_ sender: Stage.Sender, from stream: StreamID) -> Bool {
        directory.shutsOut(sender, from: stream)
    }

    /// Which of a stream's invitation links are revoked; none for a stream that does not exist.
    package func linkRevocations(
        of stream: StreamID
    ) async throws(StageRefusal) -> StageRecord.LinkRevocations {
        await (try knownHost(of: stream))?.committed?.linkRevocations ?? StageRecord.LinkRevocations()
    }

    /// The participants who are banned from a stream.
    package func bans(of stream: StreamID, as sender: Stage.Sender) async throws(StageRefusal) -> JSON {
        try await madeHost(of: stream).bans(as: sender)
    }

    /// The content of a follower's snapshot, for clients that poll.
    package func overview(of stream: StreamID) async throws(StageRefusal) -> JSON {
        await (try madeHost(of: stream)).overview
    }

    /// Applies a command of a member of the audience.
    /// - Returns: the reply, once the change is durable.
    package func perform(
        _ command: Interaction.Command, in stream: StreamID, from sender: Stage.Sender
    ) async throws(StageRefusal) -> Interaction.Reply {
        try await madeHost(of: stream).perform(command, from: sender)
    }

    /// A page of a stream's comments, in order.
    /// - Parameters: `before` and `after`: numbers of comments, both excluded; nil for no bound.
    package func comments(
        of stream: StreamID, before: Int?, after: Int?, limit: Int, as sender: Stage.Sender?
    ) async throws(StageRefusal) -> JSON {
        try await madeHost(of: stream).comments(before: before, after: after, limit: limit, as: sender)
    }

    /// The log of moderation in a stream: who removed or showed what.
    package func audit(of stream: StreamID, as sender: Stage.Sender) async throws(StageRefusal) -> JSON {
        try await madeHost(of: stream).audit(as: sender)
    }

    /// A stream's latest poll, and how the participant voted in it.
    /// - Parameter number: has to be that of the latest poll.
    package func poll(
        _ number: Int, of stream: StreamID, as sender: Stage.Sender?
    ) async throws(StageRefusal) -> JSON {
        try await madeHost(of: stream).poll(number, as: sender)
    }

    /// A page of the gifts in a stream, in order.
    package func gifts(
        of stream: StreamID, after number: Int, limit: Int, as sender: Stage.Sender
    ) async throws(StageRefusal) -> JSON {
        try await madeHost(of: stream).gifts(after: number, limit: limit, as: sender)
    }

    /// The participants who gave most in a stream, or took part most.
    package func rank(
        _ name: RankName, of stream: StreamID, period: RankPeriod, as sender: Stage.Sender?
    ) async throws(StageRefusal) -> JSON {
        try await madeHost(of: stream).rank(name, of: period, as: sender)
    }

    /// What a stream's audience may do; hosts see all settings.
    package func interactionSettings(
        of stream: StreamID, as sender: Stage.Sender?
    ) async throws(StageRefusal) -> JSON {
        try await madeHost(of: stream).interactionSettings(as: sender)
    }

    /// Starts to send a stream's changes to a follower.
    /// - Parameters:
    ///   - sender: nil for an anonymous follower.
    ///   - since: the version that the follower has; nil for a snapshot.
    ///   - expiry: when the follower's token expires; nil for never.
    /// - Returns: a function that ends it.
    package func follow(
        _ stream: StreamID, as sender: Stage.Sender?, since: UInt64?, until expiry: WallTime?,
        _ end: any SyncFollower
    ) async throws(StageRefusal) -> @Sendable () async -> Void {
        let host = try await place(of: stream, isStranger: sender == nil)
        let number = try await host.follow(as: sender, since: since, until: expiry, end)
        return { await host.unfollow(number) }
    }

    /// Assigns a viewer's session that was made without a token to a participant.
    ///
    /// Knowing the session's name proves that the caller made it. From now on the session may also watch whatever the
    /// token allows.
    package func adopt(_ id: SessionID, in stream: StreamID, as sender: Stage.Sender) async {
        guard let record = live.sessions[id], record.stream == stream else { return }
        await show(sender, in: .one(stream), for: id)
        guard record.purpose == .play, record.request.sender == nil else { return }
        live.adopt(id, as: sender)
        await registry[stream]?.adopt(.session(id), as: sender)
    }

    /// How long a repeated request is recognized, in seconds.
    private static let answerLifetime = 86_400
}

extension StreamSnapshot {
    /// A snapshot of a stream that ended before this process started, from its list entry; the other members keep
    /// their defaults.
    init(_ listing: StreamListing) {
        self.init(waitingFor: listing.stream)
        state = .ended
        host = ParticipantID(listing.host)
        details.title = listing.title
        details.startsAt = listing.startsAt.map { WallTime(milliseconds: $0) }
        createdAt = WallTime(milliseconds: listing.createdAt)
        endedAt = listing.endedAt.map { WallTime(milliseconds: $0) }
    }
}
