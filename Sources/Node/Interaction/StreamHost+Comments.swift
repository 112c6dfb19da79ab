import Base
import Interaction
import Recordings
import Stage
import Store

/// Pages of comments: the latest from memory, earlier ones from the store's archive.
extension StreamHost {
    /// A page of comments, in order.
    /// - Parameters:
    ///   - before: only comments with a lower number; nil for no bound.
    ///   - after: only comments with a higher number; nil for no bound. With it, the page has the first of them,
    ///     without it the last.
    package func comments(
        before: Int?, after: Int?, limit: Int, as sender: Stage.Sender? = nil
    ) async throws(StageRefusal) -> JSON {
        guard committed != nil else { throw .unknownStream }
        // All that is older than these is in the archive, and stays there while it is read.
        let record = interaction.committed
        // Comments before this one are in the archive, and stay there while it is read.
        let first = record.comments.first?.number ?? record.lastNumber + 1
        // One more than the page has, to know whether there are more.
        var query = ArchiveQuery(limit: limit + 1)
        query.before = min(before ?? .max, first)
        query.readers = .everybody(or: sender?.id.description)
        var found: [StreamComment]
        if let after {
            query.after = after
            found = try await archived(query, first: first)
            if found.count <= limit {
                found +=
                    record.page(
                        before: before, after: max(after, first - 1), limit: limit + 1 - found.count,
                        for: sender?.id
                    ).comments
            }
            return Self.page(found.prefix(limit).map(\.json), isMore: found.count > limit)
        }
        found = record.page(before: before, limit: limit + 1, for: sender?.id).comments
        if found.count <= limit {
            query.limit = limit + 1 - found.count
            query.isNewestFirst = true
            found = try await archived(query, first: first).reversed() + found
        }
        return Self.page(found.suffix(limit).map(\.json), isMore: found.count > limit)
    }

    /// A page of the comments that were written during a recording, with times in the recording.
    ///
    /// Empty if the recording belongs to an earlier stream of the same name.
    func comments(
        on recording: RecordingEntry, after number: Int, limit: Int
    ) async throws(StageRefusal) -> JSON {
        let record = interaction.committed
        let first = record.comments.first?.number ?? record.lastNumber + 1
        let time = recording.time
        var query = ArchiveQuery(limit: limit + 1)
        (query.after, query.before) = (number, first)
        query.written = time.lowerBound.milliseconds..<time.upperBound.milliseconds
        var found = try await archived(query, first: first)
        if found.count <= limit {
            found += record.page(writtenIn: time, after: number, limit: limit + 1 - found.count).comments
        }
        let spoken = found.prefix(limit).map { comment in
            comment.json(at: comment.at.milliseconds - time.lowerBound.milliseconds)
        }
        return Self.page(spoken, isMore: found.count > limit)
    }

    /// - Parameter first: the number of the first comment in memory.
    /// - Returns: no comments, without reading the store, if none of the archive can match.
    private func archived(_ query: ArchiveQuery, first: Int) async throws(StageRefusal) -> [StreamComment] {
        guard first > 1, query.before > 1, query.after < first - 1 else { return [] }
        do {
            return try await environment.store.archive(of: id, query).map(StageCoding.comment)
        } catch {
            throw .storage("\(error)")
        }
    }

    /// A comment from the archive; nil if it is in memory, or does not exist.
    func archivedComment(_ number: Int) async throws(StageRefusal) -> StreamComment? {
        guard let first = interaction.machine.record.comments.first?.number, (1..<first).contains(number)
        else { return nil }
        // The comment may be in a commit that is not finished.
        try await settled()
        var query = ArchiveQuery(limit: 1)
        (query.after, query.readers) = (number - 1, .all)
        query.before = number + 1
        return try await archived(query, first: first).first
    }

    /// Deletes comments that were written before a time, from memory and from the archive.
    /// - Returns: how many, once that is durable.
    func forgetComments(before time: WallTime) async throws(StageRefusal) -> Int {
        let old: Int
        do {
            old = try await environment.store.archived(of: id, writtenBefore: time.milliseconds)
        } catch {
            throw .storage("\(error)")
        }
        guard !isClosed, hasRoomToGather else { throw .overloaded }
        let (changes, count) = interaction.forgetComments(before: time, hasOlder: old > 0)
        guard !changes.isEmpty else { return 0 }
        try enter(changes)
        try await settled()
        return count + old
    }

    private static func page(_ comments: [JSON], isMore: Bool) -> JSON {
        .object(["comments": .array(comments), "more": .bool(isMore)])
    }
}

extension StreamComment {
    /// The representation for players of a recording.
    /// - Parameter milliseconds: the comment's time in the recording.
    fileprivate func json(at milliseconds: Int64) -> JSON {
        .object([
            "number": .integer(number), "author": .string(author.description), "name": .text(name),
            "role": .string(role.rawValue), "text": .string(text), "at": .integer(milliseconds),
        ])
    }
}
