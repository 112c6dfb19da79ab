import Interaction
import Stage

/// One entry of a stream's log: of its stage, or of its audience.
enum StreamChange: Equatable, Sendable {
    case stage(StageChange)
    case interaction(InteractionChange)

    /// Nil for what the audience did.
    var ofStage: StageChange? { if case .stage(let change) = self { change } else { nil } }
    /// Nil for what happened on the stage.
    var ofInteraction: InteractionChange? { if case .interaction(let change) = self { change } else { nil } }
}

/// All that is remembered of a stream.
struct StreamRecord: Equatable, Sendable {
    var stage: StageRecord
    var interaction = InteractionRecord()

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
                }
            case .interaction(let change): record?.interaction.apply(change)
            }
        }
        return record
    }
}

/// A change of the stage is written without a sign of what it is of, as it was when there was nothing else.
extension StreamChange: Codable {
    private enum Keys: String, CodingKey { case interaction }

    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Keys.self)
        if let change = try container.decodeIfPresent(InteractionChange.self, forKey: .interaction) {
            self = .interaction(change)
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
        }
    }
}

/// The stage's members stand beside the one of the audience, which older snapshots do not have.
extension StreamRecord: Codable {
    private enum Keys: String, CodingKey { case interaction }

    init(from decoder: any Decoder) throws {
        stage = try StageRecord(from: decoder)
        interaction =
            try decoder.container(keyedBy: Keys.self)
            .decodeIfPresent(InteractionRecord.self, forKey: .interaction) ?? InteractionRecord()
    }

    func encode(to encoder: any Encoder) throws {
        try stage.encode(to: encoder)
        var container = encoder.container(keyedBy: Keys.self)
        try container.encode(interaction, forKey: .interaction)
    }
}
