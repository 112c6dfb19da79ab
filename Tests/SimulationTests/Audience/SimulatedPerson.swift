import Base
import Stage
import TestSupport

/// One of an audience, with what their page knows: learned from messages as the pages do.
struct SimulatedPerson {
    let index: Int
    let sender: Stage.Sender
    /// Decides what they do, and what their connection does to them.
    var random: SeededGenerator
    var link: SimulatedLink?
    /// The server's name for the connection.
    var number: UInt64?
    /// Of a connection that broke: when the server notices, and when they come back.
    var brokenUntil: (noticed: MonotonicTime, back: MonotonicTime)?

    /// The latest that was told, to go on from.
    private(set) var version: UInt64?
    /// By number, as they are shown.
    private(set) var comments: [Int: JSON] = [:]
    /// Those of theirs that were answered, by the client's key.
    private(set) var written: [String: JSON] = [:]
    /// Numbers of gifts, in the order in which they were shown.
    private(set) var gifts: [Int] = []
    private var lastGift: Int?
    /// The latest gift when they came: those up to it were never shown to them.
    private(set) var giftsBefore = 0
    private(set) var giftTotals = JSON.null
    private(set) var hearts = 0
    private(set) var poll = JSON.null
    private(set) var ranks = JSON.null
    private(set) var pinned = JSON.null
    private(set) var interruptions = 0

    init(index: Int, sender: Stage.Sender, seed: UInt64) {
        (self.index, self.sender) = (index, sender)
        random = SeededGenerator(seed: seed &* 10_007 &+ UInt64(index))
    }

    mutating func noteInterruption() { interruptions += 1 }

    /// They were answered by HTTP, or on their socket.
    mutating func noteAnswer(_ comment: JSON) {
        guard case .string(let key) = comment["id"] else { return }
        written[key] = comment
        show([comment])
    }

    mutating func receive(_ message: JSON) {
        switch message["type"] {
        case .string("snapshot"):
            version = Self.integer(message["version"]).map(UInt64.init)
            takeSnapshot(message["interaction"] ?? .null)
        case .string("interaction-snapshot"): takeSnapshot(message["interaction"] ?? .null)
        case .string("change"): version = Self.integer(message["version"]).map(UInt64.init)
        case .string("interaction"): takeNews(message)
        default: break
        }
    }

    private mutating func takeSnapshot(_ interaction: JSON) {
        comments = [:]
        show(Self.list(interaction["comments"]))
        pinned = interaction["pinned"] ?? .null
        takeReactions(interaction["reactions"])
        poll = interaction["poll"] ?? .null
        ranks = interaction["ranks"]?["givers"] ?? .null
        if let gifts = interaction["gifts"] { give(Self.list(gifts["recent"]), gifts["totals"] ?? .null) }
    }

    private mutating func takeNews(_ news: JSON) {
        show(Self.list(news["comments"]))
        for number in Self.list(news["deleted"]).compactMap({ Self.integer($0) }) { comments[number] = nil }
        if let pinned = news["pinned"] { self.pinned = pinned }
        takeReactions(news["reactions"])
        if let poll = news["poll"] { self.poll = poll }
        if let ranks = news["ranks"] { self.ranks = ranks["givers"] ?? .null }
        if let totals = news["giftTotals"] { give(Self.list(news["gifts"]), totals) }
    }

    private mutating func takeReactions(_ reactions: JSON?) {
        if let total = Self.integer(reactions?["heart"]?["total"]) { hearts = total }
    }

    private mutating func show(_ new: [JSON]) {
        for comment in new { if let number = Self.integer(comment["number"]) { comments[number] = comment } }
    }

    /// What was given before they came is only counted.
    private mutating func give(_ new: [JSON], _ totals: JSON) {
        giftTotals = totals
        let numbers = new.compactMap { Self.integer($0["number"]) }
        if let lastGift { gifts += numbers.filter { $0 > lastGift } }
        let told = lastGift == nil ? Self.integer(totals["last"]) ?? 0 : 0
        if lastGift == nil { giftsBefore = told }
        lastGift = max(lastGift ?? 0, numbers.last ?? 0, told)
    }

    static func integer(_ value: JSON?) -> Int? {
        if case .number(let number) = value { Int(number) } else { nil }
    }

    static func list(_ value: JSON?) -> [JSON] {
        if case .array(let values) = value { values } else { [] }
    }
}
