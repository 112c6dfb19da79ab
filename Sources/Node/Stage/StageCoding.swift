import Base
import Foundation
import Interaction
import Stage
import Store

/// How streams are written into the store: JSON, because it can be read by people who look for what went wrong.
enum StageCoding {
    static func bytes(_ value: some Encodable) throws -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys]
        return Array(try encoder.encode(value))
    }

    /// What a stream was, out of its snapshot and the changes after it.
    /// - Throws: what is wrong with the bytes.
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

    static func archiveEntry(of comment: StreamComment) throws -> ArchiveEntry {
        ArchiveEntry(
            number: comment.number, writtenAt: comment.at.milliseconds,
            reader: comment.isHidden ? comment.author.description : nil, bytes: try bytes(comment))
    }

    static func comment(of bytes: [UInt8]) throws -> StreamComment {
        try JSONDecoder().decode(StreamComment.self, from: Data(bytes))
    }

    static func listing(of record: StageRecord) -> StreamListing {
        StreamListing(
            stream: record.id, state: StreamSnapshot(record).state.rawValue,
            host: record.host.description, title: record.details.title,
            createdAt: record.createdAt.milliseconds, startsAt: record.details.startsAt?.milliseconds,
            endedAt: record.endedAt?.milliseconds)
    }
}
