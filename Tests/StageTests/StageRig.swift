import Base
import Stage
import Testing

/// A stage, people, and a clock that is moved by hand.
struct StageRig {
    var stage: Stage
    var now = Moment(elapsed: .zero, wall: WallTime(milliseconds: 1_800_000_000_000))
    /// All changes since the stream was made.
    var log: [StageChange]
    private var nextSocket: UInt64 = 1

    static let ann = sender("ann", .host)

    init(
        origin: StageRecord.Origin = .made, startsIn seconds: Int? = nil, joinAhead: Int = 0, grace: Int = 30
    ) throws {
        var edit = StageEdit()
        if let seconds { edit.startsAt = .set(now.wall.advanced(bySeconds: seconds)) }
        edit.joinAheadSeconds = joinAhead
        edit.hostGraceSeconds = grace
        let (stage, outcome) = try Stage.create(
            try #require(StreamID("show")), origin: origin, host: Self.ann.id, hostName: "Ann", edit: edit,
            at: now)
        self.stage = stage
        log = outcome.changes
    }

    static func sender(
        _ name: String, _ authority: Stage.Sender.Authority, mayJoinBackstage: Bool = false
    ) -> Stage.Sender {
        guard let id = ParticipantID(name) else { preconditionFailure("\(name) is no identity") }
        return Stage.Sender(
            id: id, name: name.uppercased(), authority: authority, mayJoinBackstage: mayJoinBackstage)
    }

    static func viewer(_ name: String) -> Stage.Sender { sender(name, .viewer) }
    static func id(_ name: String) -> ParticipantID { sender(name, .viewer).id }

    @discardableResult
    mutating func apply(_ command: Stage.Command, from sender: Stage.Sender = ann) throws -> StageOutcome {
        let outcome = try stage.apply(command, from: sender, at: now)
        log += outcome.changes
        return outcome
    }

    /// - Returns: the connection, to be cut later.
    @discardableResult
    mutating func connect(_ sender: Stage.Sender?) -> Stage.Connection {
        let connection = Stage.Connection.socket(nextSocket)
        nextSocket += 1
        log += stage.connect(sender, by: connection, at: now).changes
        return connection
    }

    mutating func disconnect(_ sender: Stage.Sender?, _ connection: Stage.Connection) {
        stage.disconnect(sender?.id, by: connection, at: now)
    }

    mutating func setSource(
        _ owner: String?, hasVideo: Bool = true, isSuccessor: Bool = false
    ) -> StageOutcome {
        let source = owner.map {
            Stage.Source(
                owner: Self.id($0), name: nil, hasAudio: true, hasVideo: hasVideo, isSuccessor: isSuccessor)
        }
        let outcome = stage.setSource(source, at: now)
        log += outcome.changes
        return outcome
    }

    @discardableResult
    mutating func wait(_ seconds: Int) -> StageOutcome {
        now = Moment(elapsed: now.elapsed + .seconds(seconds), wall: now.wall.advanced(bySeconds: seconds))
        let outcome = stage.advance(to: now)
        log += outcome.changes
        return outcome
    }

    /// A viewer on their way to the stage, without the last step.
    mutating func invite(_ viewer: Stage.Sender) throws {
        connect(viewer)
        try apply(.invite(viewer.id))
    }

    /// A viewer who was invited and is a speaker now.
    mutating func bringOnStage(_ viewer: Stage.Sender) throws {
        try invite(viewer)
        try apply(.accept, from: viewer)
    }
}
