import Base
import Foundation
import Interaction
import Stage
import Store

/// What webhooks are told: `{"id","type","time","stream","data"}`, with the stream as of the commit it belongs to.
enum StageReport {
    @Sendable static func event(
        _ event: StageEvent, of record: StageRecord, at time: WallTime
    ) -> OutboxEvent {
        self.event(event.type, of: record, at: time, data: data(of: event, in: record))
    }

    private static func event(
        _ type: String, of record: StageRecord, at time: WallTime, data: [String: JSON]
    ) -> OutboxEvent {
        // Unique for ever, so that receivers can tell a repetition.
        let id = UUID().uuidString.lowercased()
        let members: [String: JSON] = [
            "id": .string(id), "type": .string(type), "time": .time(time),
            "stream": .string(record.id.description), "data": .object(data),
        ]
        return OutboxEvent(
            id: id, type: type, committedAt: time.milliseconds, body: JSON.object(members).bytes)
    }

    /// That a file of a recording is complete.
    static func recordingEnded(
        _ recording: JSON, of record: StageRecord, at time: WallTime
    ) -> OutboxEvent {
        event("recording.ended", of: record, at: time, data: ["recording": recording])
    }

    /// That a clip is complete.
    static func clipReady(_ clip: JSON, of record: StageRecord, at time: WallTime) -> OutboxEvent {
        event("clip.ready", of: record, at: time, data: ["clip": clip])
    }

    /// That a duel began, or what came of it; each of its streams tells that.
    static func duel(
        _ report: CommitBatch.DuelReport, of record: StageRecord, at time: WallTime
    ) -> OutboxEvent {
        event(report.type, of: record, at: time, data: ["duel": report.duel])
    }

    /// That somebody wrote something which nobody was shown so far: the receiver says whether it may be.
    static func review(
        _ draft: CommentDraft, of record: StageRecord, at time: WallTime
    ) -> OutboxEvent {
        let comment = JSON.object([
            "id": .string(draft.key), "author": .string(draft.person.id.description),
            "name": .text(draft.person.name), "role": .string(draft.person.role.rawValue),
            "text": .string(draft.text),
        ])
        return event("comment.review", of: record, at: time, data: ["comment": comment])
    }

    /// That a target takes the programme, or fails.
    static func restream(
        _ report: CommitBatch.RestreamReport, of record: StageRecord, at time: WallTime
    ) -> OutboxEvent {
        event(report.type, of: record, at: time, data: ["restream": report.restream])
    }

    private static func data(of event: StageEvent, in record: StageRecord) -> [String: JSON] {
        var stream = StreamSnapshot(record).json
        // What changes from moment to moment is not for those who hear of it later.
        for name in ["version", "viewers", "waiting", "tracks", "isRecording", "isKept", "doorsOpen"] {
            stream[name] = nil
        }
        var data = ["stream": stream]
        if let (participant, name) = event.participant(in: record) {
            data["participant"] = .object([
                "id": .string(participant.description), "name": .text(name),
                "role": .string(record.standing(of: participant).rawValue),
            ])
        }
        if case .removed(_, let isBanned) = event { data["banned"] = .bool(isBanned) }
        return data
    }
}

extension StageEvent {
    /// Stays the same for ever.
    fileprivate var type: String {
        switch self {
        case .created: "stream.created"
        case .live: "stream.live"
        case .ended: "stream.ended"
        case .joined: "participant.joined"
        case .left: "participant.left"
        case .promoted: "participant.promoted"
        case .demoted: "participant.demoted"
        case .removed: "participant.removed"
        }
    }

    fileprivate func participant(in record: StageRecord) -> (ParticipantID, String?)? {
        switch self {
        case .created, .live, .ended: nil
        case .joined(let id, let name): (id, name)
        case .left(let id), .promoted(let id), .demoted(let id), .removed(let id, _):
            (id, record.member(id)?.name)
        }
    }
}
