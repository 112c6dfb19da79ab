import Base
import Foundation
import Interaction
import Stage
import Store

/// Encodes streams for the store, as JSON, so that an operator can read the records when something is wrong.
enum StageCoding {
    /// Encodes a value with sorted keys, so that equal values have equal bytes.
    static func bytes(_ value: some Encodable) throws -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys]
        return Array(try encoder.encode(value))
    }

    /// Restores a stream from its snapshot and the changes since then.
    /// - Returns: nil if the changes do not begin with a creation.
    /// - Throws: the decoding error.
    static func record(of stored: StoredStream) throws -> StreamRecord? {
        let decoder = JSONDecoder()
        let base = try stored.snapshot.map { try decoder.decode(StreamRecord.self, from: Data($0)) }
        let changes = try stored.records.map { try decoder.decode(StreamChange.self, from: Data($0)) }
        return StreamRecord.replaying(changes, onto: base)
    }

    static func ledgerEntry(of gift: Gift) throws -> LedgerEntry {
        LedgerEntry(number: gift.number, key: gift.key, bytes: try bytes(gift))
    }

    static func gift(of bytes: [UInt8]) throws -> Gift {
        try JSONDecoder().decode(Gift.self, from: Data(bytes))
    }

    /// An entry of the comment archive.
    ///
    /// A hidden comment is stored with its author as the only reader.
    static func archiveEntry(of comment: StreamComment) throws -> ArchiveEntry {
        ArchiveEntry(
            number: comment.number, writtenAt: comment.at.milliseconds,
            reader: comment.isHidden ? comment.author.description : nil, bytes: try bytes(comment))
    }

    static func comment(of bytes: [UInt8]) throws -> StreamComment {
        try JSONDecoder().decode(StreamComment.self, from: Data(bytes))
    }

    /// The columns by which the store lists and finds streams without decoding them.
    static func listing(of record: StageRecord) -> StreamListing {
        StreamListing(
            stream: record.id, state: StreamSnapshot(record).state.rawValue,
            host: record.host.description, title: record.details.title,
            createdAt: record.createdAt.milliseconds, startsAt: record.details.startsAt?.milliseconds,
            endedAt: record.endedAt?.milliseconds)
    }
}
