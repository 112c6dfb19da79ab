import Base
import Interaction
import Store

/// Which comments go where old ones are kept: those that the state no longer has room for.
extension CommitBatch {
    /// - Parameters:
    ///   - kept: the state that the changes are made to; nil before the first.
    ///   - next: the state that they lead to.
    func archiveChange(from kept: InteractionRecord?, to next: InteractionRecord) throws -> ArchiveChange {
        var change = ArchiveChange()
        var begins = kept
        var written: [StreamComment] = []
        for case .interaction(let each) in changes {
            switch each {
            case .commented(let comment): written.append(comment)
            case .deleted(let number): change.removed.append(number)
            case .expired(let time): change.expiry = max(change.expiry ?? .min, time.milliseconds)
            default: break
            }
        }
        // What was said in a programme before is not of this one.
        if isCreation { begins = nil }
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
