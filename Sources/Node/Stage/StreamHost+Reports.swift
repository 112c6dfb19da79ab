import Base

/// Webhooks of what happens beside the stage: complete files, and the programme's targets.
extension StreamHost {
    /// Queues the webhook of a complete recording.
    package func report(recording: JSON) {
        guard reportsEvents else { return }
        try? gather { $0.recordings.append(recording) }
    }

    /// Queues the webhook of a complete clip.
    func report(clip: JSON) {
        guard reportsEvents else { return }
        try? gather { $0.clips.append(clip) }
    }

    /// Queues the webhook of a target's new state.
    func report(restream: JSON, as type: String) {
        guard reportsEvents else { return }
        try? gather { $0.restreams.append(CommitBatch.RestreamReport(type: type, restream: restream)) }
    }

    private var reportsEvents: Bool { journal.reportsEvents && committed != nil && !isClosed }

    /// Queues the webhooks of files that the store has refused, if they are due.
    func repeatReports() {
        guard let deadline = refusedReports.deadline, deadline <= environment.now().elapsed else { return }
        var reports = refusedReports.take()
        try? gather { reports.move(to: &$0) }
    }

    /// Hands over the webhooks that this host, which has closed, can no longer store.
    func handOverReports() -> FileReports { refusedReports.take() }

    /// Queues the webhooks that a closed host of this stream could not store.
    func inherit(_ reports: FileReports) {
        refusedReports.add(reports, at: environment.now().elapsed)
        scheduleTick()
    }
}
