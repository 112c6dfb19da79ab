import Base
import Forwarding
import Stage

/// What operators see of sessions.
extension Node {
    /// Tracks of other sessions that one dossier asks their workers about.
    private static let trackLimit = 16

    /// A page of the list of sessions, the latest first.
    /// - Returns: the body of `GET /v1/sessions`.
    package func sessionList(_ filter: SessionFilter) -> JSON {
        let moment = now()
        let records =
            filter.isEnded ? live.sessions.histories.ended.map(\.record) : live.sessions.all
        let found = records.filter(filter.matches).sorted { $0.order > $1.order }
        let page = found.prefix(filter.limit)
        var ends: [SessionID: SessionHistories.Ended] = [:]
        if filter.isEnded { for end in live.sessions.histories.ended { ends[end.record.id] = end } }
        let isMore = found.count > page.count
        return .object([
            "sessions": .array(
                page.map { SessionDossier(record: $0, ended: ends[$0.id], now: moment).outline }),
            "next": isMore ? .text(page.last.map { String($0.order) }) : .null,
            "total": .integer(found.count),
        ])
    }

    /// Everything known of a session that is open or has ended lately; nil if there is none.
    /// - Parameter name: its ID, or its label in the log.
    /// - Returns: the body of `GET /v1/sessions/{id}`.
    package func dossier(of name: String) async -> JSON? {
        guard let id = live.sessions.histories.find(name), let record = live.sessions[id] else {
            guard let ended = live.sessions.histories.findEnded(name) else { return nil }
            // An ended session has left its last measurements in its gauge; the tracks that it received are not
            // looked up.
            return SessionDossier(record: ended.record, ended: ended, now: now())
                .whole(ended.record.gauge.measurements, log: ended.log, sources: [:], local: [])
        }
        // The tracks that the session receives may come from sessions on other workers, which are asked one after
        // another.
        let measurements = await ask(worker: record.worker) { .measure(id, $0) }
        var sources: [TrackKey: TrackMeasurements] = [:]
        for key in Set(measurements?.sendings.compactMap(\.track) ?? []).prefix(Self.trackLimit) {
            sources[key] = await ask(worker: key.worker) { .measureTrack(key.track, $0) }
        }
        let local = workers[record.worker].advertised
        return SessionDossier(record: record, ended: nil, now: now())
            .whole(measurements, log: live.sessions.histories.log(of: id), sources: sources, local: local)
    }

    /// Records the headers of a session's packets for a while, or until the session ends.
    ///
    /// Returns only when the capture is over.
    /// - Parameter name: its ID, or its label in the log.
    /// - Returns: a capture in the pcap format, which Wireshark reads.
    package func capture(_ name: String, for time: Duration) async throws(CaptureRefusal) -> [UInt8] {
        guard let id = live.sessions.histories.find(name), let record = live.sessions[id] else {
            throw .unknownSession
        }
        let worker = workers[record.worker]
        log.info("session.captured", ["session": id.label, "seconds": "\(time)"])
        let opening = CaptureOpening(
            session: id, local: worker.advertised.first ?? worker.address, time: time)
        let outcome = await ask(worker: record.worker) { .capture(opening, $0) }
        switch outcome {
        case .captured(let bytes): return bytes
        case .running: throw .running
        // The worker has no such session any more.
        case nil: throw .unknownSession
        }
    }

    /// Ends a session at an operator's request.
    /// - Parameter name: its ID, or its label in the log.
    /// - Returns: false if there is no such session.
    package func endSession(named name: String) async -> Bool {
        guard let id = live.sessions.histories.find(name), live.sessions[id] != nil else { return false }
        await perform(live.end(id, because: "operator", at: now().elapsed))
        return true
    }

    /// Asks a worker a question, and waits for its thread to answer.
    /// - Returns: nil if the worker has no answer, or accepts no command.
    func ask<Answer: Sendable>(
        worker: Int, _ command: (Inquiry<Answer>) -> WorkerCommand
    ) async -> Answer? {
        await withCheckedContinuation { continuation in
            // A command that is refused is released, and an `Inquiry` that is released unanswered answers nil.
            _ = workers[worker].post(command(Inquiry { continuation.resume(returning: $0) }))
        }
    }
}

/// Why the headers of a session's packets cannot be recorded.
package enum CaptureRefusal: Error, Equatable, Sendable {
    case unknownSession
    /// A worker records one session at a time.
    case running
}
