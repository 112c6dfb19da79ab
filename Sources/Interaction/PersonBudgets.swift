import Base

/// A rate limit: an initial burst, and a number per second after that.
struct Rate: Sendable {
    let burst: Double
    let perSecond: Double
}

/// What is left of a rate limit for one participant (a token bucket).
struct Allowance: Equatable, Sendable {
    private var left: Double
    private var at: MonotonicTime

    /// A full allowance.
    init(_ rate: Rate, at now: MonotonicTime) {
        left = rate.burst
        at = now
    }

    /// Takes what is left, up to the wanted number.
    mutating func take(_ wanted: Int, of rate: Rate, at now: MonotonicTime) -> Int {
        refill(rate, at: now)
        // Safe to convert: it never exceeds the burst, which is small.
        let taken = min(max(wanted, 0), Int(left))
        left -= Double(taken)
        return taken
    }

    /// Seconds until one more is available; nil if one is available now.
    mutating func wait(for rate: Rate, at now: MonotonicTime) -> Int? {
        refill(rate, at: now)
        guard left < 1 else { return nil }
        return max(1, Int(((1 - left) / rate.perSecond).rounded(.up)))
    }

    /// Adds what has accumulated since the last call.
    ///
    /// A time that goes back adds nothing.
    private mutating func refill(_ rate: Rate, at now: MonotonicTime) {
        let seconds = Double(max(now.nanoseconds(since: at), 0)) / 1e9
        left = min(rate.burst, left + seconds * rate.perSecond)
        at = max(at, now)
    }
}

/// The rate limits of each participant; bounded, however many identities a client uses.
struct PersonBudgets: Sendable {
    /// Requests of any kind, also refused ones, because processing them has a cost, too.
    static let requests = Rate(burst: 20, perSecond: 5)
    /// Comments, in addition to the limit on requests.
    static let comments = Rate(burst: 3, perSecond: 1)
    /// Taps: what a person can do with two thumbs.
    static let taps = Rate(burst: 40, perSecond: 20)

    /// One participant's allowances.
    struct Person: Sendable {
        var requests: Allowance
        var comments: Allowance
        var taps: Allowance
        /// For slow mode; nil before the first comment.
        var lastComment: MonotonicTime?
        /// When it was last used.
        fileprivate var at: MonotonicTime

        fileprivate init(at now: MonotonicTime) {
            requests = Allowance(PersonBudgets.requests, at: now)
            comments = Allowance(PersonBudgets.comments, at: now)
            taps = Allowance(PersonBudgets.taps, at: now)
            at = now
        }
    }

    /// Participants remembered; further ones share one budget until others have been idle for `memory`.
    static let limit = 10_000
    /// Additional places for hosts and moderators, so that a crowd cannot take their budgets.
    static let keeperLimit = 1_000
    /// How long an idle participant is remembered: longer than the longest slow mode.
    private static let memory = Duration.seconds(130)
    /// Time between two searches for idle participants, because each looks at all of them.
    private static let sweepInterval = Duration.seconds(5)

    private var people: [ParticipantID: Person] = [:]
    /// Shared by participants for whom there is no place.
    private var crowd: Person?
    private var sweptAt: MonotonicTime?

    /// Gives access to a participant's budget, and stores it afterwards.
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

    /// Forgets participants who have been idle for `memory`.
    private mutating func sweep(at now: MonotonicTime) {
        if let sweptAt, sweptAt + Self.sweepInterval > now { return }
        sweptAt = now
        people = people.filter { $0.value.at + Self.memory > now }
    }
}
