import Base

/// Webhooks of what happens beside the stage: complete files, and the programme's targets.
extension StreamHost {
    /// Queues the webhook of a complete recording; a host that has closed keeps it for the next one.
    package func report(recording: JSON) {
        report { $0.recordings.append(recording) }
    }

    /// The same for a complete clip.
    func report(clip: JSON) {
        report { $0.clips.append(clip) }
    }

    /// Queues the webhook of a file, which nothing reports again.
    private func report(file add: (inout CommitBatch) -> Void) {
        guard journal.reportsEvents, committed != nil else { return }
        guard isClosed else {
            try? gather(add)
            return
        }
        var batch = CommitBatch()
        add(&batch)
        refusedReports.keep([batch], at: environment.now().elapsed)
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

    /// Queues the webhooks that a closed host of this stream could not store; drops them if the stream is gone since.
    func inherit(_ reports: FileReports) {
        guard committed != nil else { return }
        refusedReports.add(reports, at: environment.now().elapsed)
        scheduleTick()
    }
}
