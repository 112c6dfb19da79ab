/// Decides what the audience of one show does, and when; the same seed gives the same actions.
struct DemoCrowd {
    enum Act: Equatable {
        /// `person` is an index of the viewers.
        case comment(person: Int, text: String)
        case hearts(person: Int, count: Int)
        /// `gift` is an index of the shop's gifts.
        case gift(person: Int, gift: Int, count: Int)
        /// The host opens a poll.
        case openPoll
        case vote(person: Int, answer: Int)
        case closePoll
    }

    private let people: Int
    private let remarks: [String]
    private let answers: Int
    private let gifts: Int
    private var random: SplitMix64
    /// Remarks that were not made yet; when all were, they start again in another order.
    private var unsaid: [String] = []
    /// Viewers who have not voted in the open poll; nil if none is open.
    private var undecided: [Int]?
    /// Acts until the poll is opened or closed.
    private var actsLeft = DemoCrowd.actsBetweenPolls

    private static let actsBetweenPolls = 30
    private static let actsOfPoll = 18
    /// Seconds between two acts; the average is about half of this.
    private static let longestPause = 3.0

    /// - Parameters:
    ///   - people: number of viewers.
    ///   - answers: number of answers to the show's question.
    ///   - gifts: number of gifts in the shop, the most expensive one last.
    init(people: Int, remarks: [String], answers: Int, gifts: Int, seed: UInt64) {
        self.people = max(people, 1)
        self.remarks = remarks
        self.answers = max(answers, 1)
        self.gifts = gifts
        random = SplitMix64(seed: seed)
    }

    /// The next act, and the pause before it in seconds.
    mutating func next() -> (pause: Double, act: Act) {
        (Double.random(in: 0.2...Self.longestPause, using: &random), nextAct())
    }

    /// Opens or closes the poll when its time has come; else votes, gives, writes or taps.
    private mutating func nextAct() -> Act {
        actsLeft -= 1
        guard actsLeft > 0 else {
            let isOpen = undecided != nil
            undecided = isOpen ? nil : Array(0..<people)
            actsLeft = isOpen ? Self.actsBetweenPolls : Self.actsOfPoll
            return isOpen ? .closePoll : .openPoll
        }
        // While a poll is open, every second act is a vote.
        if var waiting = undecided, !waiting.isEmpty, Bool.random(using: &random) {
            let person = waiting.remove(at: Int.random(in: waiting.indices, using: &random))
            undecided = waiting
            return .vote(person: person, answer: Int.random(in: 0..<answers, using: &random))
        }
        let person = Int.random(in: 0..<people, using: &random)
        if gifts > 0, Int.random(in: 0..<12, using: &random) == 0 {
            // The smaller of two random numbers: expensive gifts are rarer.
            let gift = min(
                Int.random(in: 0..<gifts, using: &random), Int.random(in: 0..<gifts, using: &random))
            return .gift(person: person, gift: gift, count: Int.random(in: 1...3, using: &random))
        }
        guard Int.random(in: 0..<5, using: &random) < 2, !remarks.isEmpty else {
            return .hearts(person: person, count: Int.random(in: 1...8, using: &random))
        }
        if unsaid.isEmpty { unsaid = remarks.shuffled(using: &random) }
        return .comment(person: person, text: unsaid.removeLast())
    }
}
