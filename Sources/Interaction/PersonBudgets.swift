import Base

/// So many at once, and then so many a second.
struct Rate: Sendable {
    let burst: Double
    let perSecond: Double
}

/// What is left of a rate for one person.
struct Allowance: Equatable, Sendable {
    private var left: Double
    private var at: MonotonicTime

    init(_ rate: Rate, at now: MonotonicTime) {
        left = rate.burst
        at = now
    }

    /// Takes what there is, up to so many.
    mutating func take(_ wanted: Int, of rate: Rate, at now: MonotonicTime) -> Int {
        refill(rate, at: now)
        // Never more than the burst, which is a small number.
        let taken = min(max(wanted, 0), Int(left))
        left -= Double(taken)
        return taken
    }

    /// In how many seconds there is one more; nil where there is.
    mutating func wait(for rate: Rate, at now: MonotonicTime) -> Int? {
        refill(rate, at: now)
        guard left < 1 else { return nil }
        return max(1, Int(((1 - left) / rate.perSecond).rounded(.up)))
    }

    private mutating func refill(_ rate: Rate, at now: MonotonicTime) {
        let seconds = Double(max(now.nanoseconds(since: at), 0)) / 1e9
        left = min(rate.burst, left + seconds * rate.perSecond)
        at = max(at, now)
    }
}

/// How much each person has done lately; bounded, whoever comes with however many names.
struct PersonBudgets: Sendable {
    /// Requests of any kind, also those that are refused: looking at them costs something as well.
    static let requests = Rate(burst: 20, perSecond: 5)
    static let comments = Rate(burst: 3, perSecond: 1)
    /// Taps: what two busy thumbs can do.
    static let taps = Rate(burst: 40, perSecond: 20)

    struct Person: Sendable {
        var requests: Allowance
        var comments: Allowance
        var taps: Allowance
        var lastComment: MonotonicTime?
        fileprivate var at: MonotonicTime

        fileprivate init(at now: MonotonicTime) {
            requests = Allowance(PersonBudgets.requests, at: now)
            comments = Allowance(PersonBudgets.comments, at: now)
            taps = Allowance(PersonBudgets.taps, at: now)
            at = now
        }
    }

    /// People who are remembered; those beyond share one budget, until others have been quiet for `memory`.
    static let limit = 10_000
    /// So many more of those who keep order: no crowd takes their budget.
    static let keeperLimit = 1_000
    /// Longer than the slowest slow mode.
    private static let memory = Duration.seconds(130)
    /// Between two looks for those who have been quiet.
    private static let sweepInterval = Duration.seconds(5)

    private var people: [ParticipantID: Person] = [:]
    private var crowd: Person?
    private var sweptAt: MonotonicTime?

    /// Looks at somebody's budget, and changes it.
    mutating func use<Result, Failure: Error>(
        _ one: Interaction.Person, at now: MonotonicTime, _ body: (inout Person) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        let id = one.id
        if people[id] == nil, people.count >= Self.limit { sweep(at: now) }
        let room = Self.limit + (one.isModerator || one.mayModerate ? Self.keeperLimit : 0)
        let isKnown = people[id] != nil || people.count < room
        var person = (isKnown ? people[id] : crowd) ?? Person(at: now)
        person.at = now
        defer { if isKnown { people[id] = person } else { crowd = person } }
        return try body(&person)
    }

    private mutating func sweep(at now: MonotonicTime) {
        if let sweptAt, sweptAt + Self.sweepInterval > now { return }
        sweptAt = now
        people = people.filter { $0.value.at + Self.memory > now }
    }
}
