import Base
import Crypto
import Foundation
import Interaction
import Stage
import Store

/// Streams by name: made, found, asked and followed.
extension Node {
    // MARK: Finding

    /// Reads what the store knows of streams that have not ended, and the names of those that have.
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

    /// The place of a stream that somebody made, or that somebody waits for; nil for a name that means nothing.
    ///
    /// - Parameter isStranger: whether whoever asks has no token.
    package func knownHost(
        of id: StreamID, isStranger: Bool = false
    ) async throws(StageRefusal) -> StreamHost? {
        guard !isStopping || registry[id] != nil else { throw .overloaded }
        switch try registry.place(of: id, isStranger: isStranger) {
        case .open(let host): return host
        case .absent: return nil
        case .lookup(let lookup):
            do {
                return registry.settle(lookup, of: id, found: try await lookup.value)
            } catch {
                registry.abandon(lookup, of: id)
                throw .storage("\(error)")
            }
        }
    }

    /// The place of a stream, whether anybody made it or not: for those who may make it, or wait until somebody does.
    package func host(
        of id: StreamID, isStranger: Bool = false
    ) async throws(StageRefusal) -> StreamHost {
        if let host = try await knownHost(of: id, isStranger: isStranger) { return host }
        guard !isStopping else { throw .overloaded }
        return try registry.make(id)
    }

    /// The place of a stream that somebody made.
    func madeHost(of id: StreamID, isStranger: Bool = false) async throws(StageRefusal) -> StreamHost {
        guard let host = try await knownHost(of: id, isStranger: isStranger), await host.committed != nil
        else {
            throw .unknownStream
        }
        return host
    }

    /// The place of a stream that somebody made, or that may come about by publishing.
    func place(of id: StreamID, isStranger: Bool) async throws(StageRefusal) -> StreamHost {
        guard configuration.createsStreamsOnPublish else {
            return try await madeHost(of: id, isStranger: isStranger)
        }
        return try await host(of: id, isStranger: isStranger)
    }

    /// A part of the list of streams; waits for nobody.
    package nonisolated func streamPage(
        after place: StreamSnapshot.ListOrder?, limit: Int, isOnlyLive: Bool,
        where isWanted: (StreamSnapshot) -> Bool
    ) -> StreamDirectory.Page {
        directory.page(after: place, limit: limit, isOnlyLive: isOnlyLive, where: isWanted)
    }

    /// All streams, in no order.
    package nonisolated var streamSnapshots: [StreamSnapshot] { directory.everything }

    /// Nil for a stream that nobody made and nobody waits for.
    package func streamSnapshot(_ id: StreamID) async -> StreamSnapshot? {
        if let host = registry[id] {
            let snapshot = await host.snapshot
            // Somebody waits for it, or nobody ever heard of it.
            return snapshot.createdAt != nil || live[id] != nil ? snapshot : nil
        }
        return directory[id]
    }

    // MARK: Asking

    /// What somebody wants a stream to be made of.
    package struct StreamCreation: Sendable {
        /// Nil to have one made up.
        package let id: StreamID?
        /// Whom the stream belongs to from its first moment.
        package let host: ParticipantID
        /// For people.
        package let hostName: String?
        /// What differs from the usual settings.
        package let edit: StageEdit
        /// Whose request it is, by the client's own key, and the request itself.
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

    /// Makes a stream; the same request with the same key makes it once.
    package func createStream(_ creation: StreamCreation) async throws(StageRefusal) -> StreamSnapshot {
        guard let (key, request) = creation.idempotency else {
            return try await create(creation, answer: nil)
        }
        guard registry.begin(key) else { throw .busy }
        defer { registry.end(key) }
        let digest = HMAC.sha256(key: Array("rostrum".utf8).span, request.span)
        let time = now().wall
        let earlier: IdempotentAnswer?
        do throws(StoreError) {
            earlier = try await registry.store.answer(to: key, at: time.milliseconds)
        } catch {
            throw .storage("\(error)")
        }
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

    private func create(
        _ creation: StreamCreation,
        answer: (@Sendable (StreamID) -> (key: IdempotencyKey, value: IdempotentAnswer))?
    ) async throws(StageRefusal) -> StreamSnapshot {
        let id = if let id = creation.id { id } else { try makeStreamID() }
        let host = try await host(of: id)
        return try await host.create(
            host: creation.host, name: creation.hostName, edit: creation.edit, answer: answer?(id))
    }

    /// 60 random bits: neither guessed nor ever the same.
    private func makeStreamID() throws(StageRefusal) -> StreamID {
        let alphabet = Array("abcdefghijkmnpqrstuvwxyz23456789")
        let letters = (0..<12).map { _ in alphabet[Int.random(in: 0..<alphabet.count, using: &random)] }
        guard let id = StreamID(String(letters)) else { throw .overloaded }
        return id
    }

    /// Does what somebody wants in a stream, once that is durable.
    package func perform(
        _ command: Stage.Command, in stream: StreamID, from sender: Stage.Sender
    ) async throws(StageRefusal) -> StageAnswer {
        try await madeHost(of: stream).perform(command, from: sender)
    }

    /// What somebody is in a stream now.
    package func look(at stream: StreamID, as sender: Stage.Sender) async throws(StageRefusal) -> StageAnswer
    {
        try await madeHost(of: stream).look(as: sender)
    }

    /// Which of a stream's links lead nowhere any more; none of a stream that nobody made.
    package func linkRevocations(
        of stream: StreamID
    ) async throws(StageRefusal) -> StageRecord.LinkRevocations {
        await (try knownHost(of: stream))?.committed?.linkRevocations ?? StageRecord.LinkRevocations()
    }

    /// Who is kept out of a stream.
    package func bans(of stream: StreamID, as sender: Stage.Sender) async throws(StageRefusal) -> JSON {
        try await madeHost(of: stream).bans(as: sender)
    }

    /// What a follower's snapshot holds, for those who ask only once.
    package func overview(of stream: StreamID) async throws(StageRefusal) -> JSON {
        await (try madeHost(of: stream)).overview
    }

    /// Does what somebody of the audience wants, once that is durable.
    package func perform(
        _ command: Interaction.Command, in stream: StreamID, from sender: Stage.Sender
    ) async throws(StageRefusal) -> Interaction.Reply {
        try await madeHost(of: stream).perform(command, from: sender)
    }

    /// A part of a stream's comments, in order.
    /// - Parameters: `before` and `after`: numbers of comments between which they lie; nil for no bound.
    package func comments(
        of stream: StreamID, before: Int?, after: Int?, limit: Int, as sender: Stage.Sender?
    ) async throws(StageRefusal) -> JSON {
        try await madeHost(of: stream).comments(before: before, after: after, limit: limit, as: sender)
    }

    /// Who took what away or showed it in a stream.
    package func audit(of stream: StreamID, as sender: Stage.Sender) async throws(StageRefusal) -> JSON {
        try await madeHost(of: stream).audit(as: sender)
    }

    /// A stream's latest poll, and what somebody chose in it.
    package func poll(
        _ number: Int, of stream: StreamID, as sender: Stage.Sender?
    ) async throws(StageRefusal) -> JSON {
        try await madeHost(of: stream).poll(number, as: sender)
    }

    /// A part of what was given in a stream, in order.
    package func gifts(
        of stream: StreamID, after number: Int, limit: Int, as sender: Stage.Sender
    ) async throws(StageRefusal) -> JSON {
        try await madeHost(of: stream).gifts(after: number, limit: limit, as: sender)
    }

    /// Those who gave most in a stream, or took part most.
    package func rank(
        _ name: RankName, of stream: StreamID, period: RankPeriod, as sender: Stage.Sender?
    ) async throws(StageRefusal) -> JSON {
        try await madeHost(of: stream).rank(name, of: period, as: sender)
    }

    /// What a stream's audience may do; hosts see all of it.
    package func interactionSettings(
        of stream: StreamID, as sender: Stage.Sender?
    ) async throws(StageRefusal) -> JSON {
        try await madeHost(of: stream).interactionSettings(as: sender)
    }

    /// Begins to tell somebody of a stream.
    /// - Returns: what ends it.
    package func follow(
        _ stream: StreamID, as sender: Stage.Sender?, since: UInt64?, until expiry: WallTime?,
        _ end: any SyncFollower
    ) async throws(StageRefusal) -> @Sendable () async -> Void {
        let host = try await place(of: stream, isStranger: sender == nil)
        let number = try await host.follow(as: sender, since: since, until: expiry, end)
        return { await host.unfollow(number) }
    }

    /// Notes whose a viewer's session is that was made without a token; whoever knows its name made it.
    ///
    /// What their token opens is open to the session.
    package func adopt(_ id: SessionID, in stream: StreamID, as sender: Stage.Sender) async {
        guard let record = live.sessions[id], record.stream == stream else { return }
        await show(sender, in: .one(stream), for: id)
        guard record.purpose == .play, record.request.sender == nil else { return }
        live.adopt(id, as: sender)
        await registry[stream]?.adopt(.session(id), as: sender)
    }

    /// In seconds: for how long a repeated request is known.
    private static let answerLifetime = 86_400
}

extension StreamSnapshot {
    /// What lists say of a stream that ended before this process began.
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
