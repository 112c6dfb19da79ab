import Base
import Foundation
import Interaction
import Stage
import Store

/// Makes the bodies of webhooks: `{"id","type","time","stream","data"}`, with the stream as of the commit that the
/// event belongs to.
enum StageReport {
    /// The webhook of a stage event.
    /// - Parameters:
    ///   - record: the stream as of the event's commit.
    ///   - time: when the commit was made.
    @Sendable static func event(
        _ event: StageEvent, of record: StageRecord, at time: WallTime
    ) -> OutboxEvent {
        self.event(event.type, of: record, at: time, data: data(of: event, in: record))
    }

    private static func event(
        _ type: String, of record: StageRecord, at time: WallTime, data: [String: JSON]
    ) -> OutboxEvent {
        // Unique for ever, so that a receiver can recognize a repeated delivery.
        let id = UUID().uuidString.lowercased()
        let members: [String: JSON] = [
            "id": .string(id), "type": .string(type), "time": .time(time),
            "stream": .string(record.id.description), "data": .object(data),
        ]
        return OutboxEvent(
            id: id, type: type, committedAt: time.milliseconds, body: JSON.object(members).bytes)
    }

    /// The webhook of a recording's file that is complete.
    static func recordingEnded(
        _ recording: JSON, of record: StageRecord, at time: WallTime
    ) -> OutboxEvent {
        event("recording.ended", of: record, at: time, data: ["recording": recording])
    }

    /// The webhook of a clip that is complete.
    static func clipReady(_ clip: JSON, of record: StageRecord, at time: WallTime) -> OutboxEvent {
        event("clip.ready", of: record, at: time, data: ["clip": clip])
    }

    /// The webhook of a duel that began, or of its result; each of the two streams reports it.
    static func duel(
        _ report: CommitBatch.DuelReport, of record: StageRecord, at time: WallTime
    ) -> OutboxEvent {
        event(report.type, of: record, at: time, data: ["duel": report.duel])
    }

    /// The webhook that asks the receiver whether a comment may be shown.
    ///
    /// No participant has seen the comment yet.
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

    /// The webhook of a target that takes the programme, or fails.
    static func restream(
        _ report: CommitBatch.RestreamReport, of record: StageRecord, at time: WallTime
    ) -> OutboxEvent {
        event(report.type, of: record, at: time, data: ["restream": report.restream])
    }

    /// The member `data`: the stream, and the participant whom the event is about.
    private static func data(of event: StageEvent, in record: StageRecord) -> [String: JSON] {
        var stream = StreamSnapshot(record).json
        // These change from moment to moment and would be out of date when the webhook arrives.
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
    /// The type in the webhook.
    ///
    /// Part of the API: a name must not change.
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

    /// The participant whom the event is about, with their name; nil for events of the stream itself.
    fileprivate func participant(in record: StageRecord) -> (ParticipantID, String?)? {
        switch self {
        case .created, .live, .ended: nil
        // A participant who joins need not be a member of the record, so the event itself carries the name.
        case .joined(let id, let name): (id, name)
        case .left(let id), .promoted(let id), .demoted(let id), .removed(let id, _):
            (id, record.member(id)?.name)
        }
    }
}
