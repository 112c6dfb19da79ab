import Interaction
import Restream
import Stage

/// One entry of a stream's log: of its stage, of its audience, of a duel, or of where its programme goes.
enum StreamChange: Equatable, Sendable {
    case stage(StageChange)
    case interaction(InteractionChange)
    /// As it is from now on.
    case duel(Duel)
    /// Where the programme goes on to; as it is from now on.
    case restreams(RestreamList)

    /// Nil for what the audience did.
    var ofStage: StageChange? { if case .stage(let change) = self { change } else { nil } }
    /// Nil for what happened on the stage.
    var ofInteraction: InteractionChange? { if case .interaction(let change) = self { change } else { nil } }
    var isOfDuel: Bool { if case .duel = self { true } else { false } }
}

/// All that is remembered of a stream.
struct StreamRecord: Equatable, Sendable {
    var stage: StageRecord
    var interaction = InteractionRecord()
    /// The latest last.
    var duels: [Duel] = []
    /// With their keys, which are forgotten when the stream ends.
    var restreams = RestreamList()

    /// The record that changes give, from the first on; nil for those that do not begin with a creation.
    static func replaying(_ changes: some Sequence<StreamChange>, onto record: StreamRecord? = nil)
        -> StreamRecord?
    {
        var record = record
        for change in changes {
            switch change {
            case .stage(let change):
                if case .created = change {
                    // What was said in a programme before, under the same name, is not of this one.
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

/// A change of the stage is written without a sign of what it is of, as it was when there was nothing else.
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

/// The stage's members stand beside those of the audience, of duels and of targets, which older snapshots do not have.
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
