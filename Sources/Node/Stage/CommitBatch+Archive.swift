import Base
import Interaction
import Store

/// Selects the comments that move to the archive: those that the state no longer has room for.
extension CommitBatch {
    /// What a commit changes in the archive of comments.
    /// - Parameters:
    ///   - kept: the state before the batch; nil before the stream's first commit.
    ///   - next: the state after the batch.
    /// - Throws: if a comment cannot be encoded.
    func archiveChange(from kept: InteractionRecord?, to next: InteractionRecord) throws -> ArchiveChange {
        var change = ArchiveChange()
        var begins = kept
        var written: [StreamComment] = []
        // Comments of this batch, and what it deletes: a comment may be written and deleted, or displaced, in one
        // batch. Those of an earlier programme under the same name do not belong to this one.
        for case .interaction(let each) in programmes().present {
            switch each {
            case .commented(let comment): written.append(comment)
            case .deleted(let number): change.removed.append(number)
            case .expired(let time): change.expiry = max(change.expiry ?? .min, time.milliseconds)
            default: break
            }
        }
        if isCreation { begins = nil }
        // The state keeps the newest comments. Where its oldest one is the same as before, none was displaced.
        guard let first = next.comments.first?.number, first != begins?.comments.first?.number else {
            return change
        }
        let removed = Set(change.removed)
        let former = begins?.comments.prefix { $0.number < first } ?? []
        change.entries = try (former + written.prefix { $0.number < first })
            .filter { comment in
                !comment.isDeleted && !removed.contains(comment.number)
                    && comment.at.milliseconds >= change.expiry ?? .min
            }
            .map(StageCoding.archiveEntry)
        return change
    }
}
