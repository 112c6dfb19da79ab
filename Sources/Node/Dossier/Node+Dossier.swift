import Base
import Forwarding
import Stage

/// What operators see of sessions.
extension Node {
    /// Tracks of others that a dossier looks into.
    private static let trackLimit = 16

    /// A part of the list of sessions, the latest first.
    /// - Returns: as `GET /v1/sessions` says it.
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

    /// All that is known of a session that lives or ended lately; nil if there is none.
    /// - Parameter name: its id, or what the log calls it.
    /// - Returns: as `GET /v1/sessions/{id}` says it.
    package func dossier(of name: String) async -> JSON? {
        guard let id = live.sessions.histories.find(name), let record = live.sessions[id] else {
            guard let ended = live.sessions.histories.findEnded(name) else { return nil }
            return SessionDossier(record: ended.record, ended: ended, now: now())
                .whole(ended.record.gauge.measurements, log: ended.log, sources: [:], local: [])
        }
        let measurements = await ask(worker: record.worker) { .measure(id, $0) }
        var sources: [TrackKey: TrackMeasurements] = [:]
        for key in Set(measurements?.sendings.compactMap(\.track) ?? []).prefix(Self.trackLimit) {
            sources[key] = await ask(worker: key.worker) { .measureTrack(key.track, $0) }
        }
        let local = workers[record.worker].advertised
        return SessionDossier(record: record, ended: nil, now: now())
            .whole(measurements, log: live.sessions.histories.log(of: id), sources: sources, local: local)
    }

    /// Records the headers of a session's packets, for a while or until it ends.
    /// - Parameter name: its id, or what the log calls it.
    /// - Returns: a capture as Wireshark reads it (pcap).
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
        case nil: throw .unknownSession
        }
    }

    /// Ends a session for an operator.
    /// - Parameter name: its id, or what the log calls it.
    /// - Returns: false if there is none.
    package func endSession(named name: String) async -> Bool {
        guard let id = live.sessions.histories.find(name), live.sessions[id] != nil else { return false }
        await perform(live.end(id, because: "operator", at: now().elapsed))
        return true
    }

    /// Asks a worker, and waits for its thread; nil where it does not know.
    func ask<Answer: Sendable>(
        worker: Int, _ command: (Inquiry<Answer>) -> WorkerCommand
    ) async -> Answer? {
        await withCheckedContinuation { continuation in
            // One that is not taken is let go of, and so answered.
            _ = workers[worker].post(command(Inquiry { continuation.resume(returning: $0) }))
        }
    }
}

/// Why the headers of a session's packets are not recorded.
package enum CaptureRefusal: Error, Equatable, Sendable {
    case unknownSession
    /// A worker records one session at a time.
    case running
}
