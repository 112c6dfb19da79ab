import Interaction
import Restream
import Stage

/// One entry of a stream's log: a change of its stage, of its audience, of a duel, or of its restream targets.
enum StreamChange: Equatable, Sendable {
    case stage(StageChange)
    case interaction(InteractionChange)
    /// A duel as it is after the change.
    case duel(Duel)
    /// All targets as they are after the change.
    case restreams(RestreamList)

    /// The change of the stage; nil for all other changes.
    var ofStage: StageChange? { if case .stage(let change) = self { change } else { nil } }
    /// The change by the audience; nil for all other changes.
    var ofInteraction: InteractionChange? { if case .interaction(let change) = self { change } else { nil } }
    var isOfDuel: Bool { if case .duel = self { true } else { false } }
    /// Whether a programme begins, possibly under the name of an earlier one.
    var isCreation: Bool { if case .stage(.created) = self { true } else { false } }
}

/// The durable state of a stream, as snapshots contain it.
struct StreamRecord: Equatable, Sendable {
    var stage: StageRecord
    var interaction = InteractionRecord()
    /// The latest last.
    var duels: [Duel] = []
    /// The targets, with their keys, which are deleted when the stream ends.
    var restreams = RestreamList()

    /// Applies changes to a record.
    /// - Returns: nil if there is no record, and the changes do not begin with a creation.
    static func replaying(_ changes: some Sequence<StreamChange>, onto record: StreamRecord? = nil)
        -> StreamRecord?
    {
        var record = record
        for change in changes {
            switch change {
            case .stage(let change):
                // A creation begins a new record: comments, duels and targets of an earlier programme under the same
                // name are not part of it.
                if case .created = change {
                    record = StageRecord.replaying([change]).map { StreamRecord(stage: $0) }
                } else {
                    record?.stage.apply(change)
                    if case .ended = change { record?.restreams = RestreamList() }
                }
            case .interaction(let change): record?.interaction.apply(change)
            case .duel(let duel):
                var duels = record?.duels ?? []
                DuelSide.keep(duel, in: &duels)
                record?.duels = duels
            case .restreams(let list): record?.restreams = list
            }
        }
        return record
    }
}

/// A change of the stage has no key of its own, as in logs from before other kinds of change existed.
extension StreamChange: Codable {
    private enum Keys: String, CodingKey { case interaction, duel, restreams }

    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Keys.self)
        if let change = try container.decodeIfPresent(InteractionChange.self, forKey: .interaction) {
            self = .interaction(change)
        } else if let duel = try container.decodeIfPresent(Duel.self, forKey: .duel) {
            self = .duel(duel)
        } else if let list = try container.decodeIfPresent(RestreamList.self, forKey: .restreams) {
            self = .restreams(list)
        } else {
            self = .stage(try StageChange(from: decoder))
        }
    }

    func encode(to encoder: any Encoder) throws {
        switch self {
        case .stage(let change): try change.encode(to: encoder)
        case .interaction(let change):
            var container = encoder.container(keyedBy: Keys.self)
            try container.encode(change, forKey: .interaction)
        case .duel(let duel):
            var container = encoder.container(keyedBy: Keys.self)
            try container.encode(duel, forKey: .duel)
        case .restreams(let list):
            var container = encoder.container(keyedBy: Keys.self)
            try container.encode(list, forKey: .restreams)
        }
    }
}

/// The stage's members are at the top level, beside the others, which older snapshots do not contain.
extension StreamRecord: Codable {
    private enum Keys: String, CodingKey { case interaction, duels, restreams }

    init(from decoder: any Decoder) throws {
        stage = try StageRecord(from: decoder)
        let container = try decoder.container(keyedBy: Keys.self)
        interaction =
            try container.decodeIfPresent(InteractionRecord.self, forKey: .interaction) ?? InteractionRecord()
        duels = try container.decodeIfPresent([Duel].self, forKey: .duels) ?? []
        restreams =
            try container.decodeIfPresent(RestreamList.self, forKey: .restreams) ?? RestreamList()
    }

    func encode(to encoder: any Encoder) throws {
        try stage.encode(to: encoder)
        var container = encoder.container(keyedBy: Keys.self)
        try container.encode(interaction, forKey: .interaction)
        if !duels.isEmpty { try container.encode(duels, forKey: .duels) }
        if !restreams.targets.isEmpty { try container.encode(restreams, forKey: .restreams) }
    }
}
