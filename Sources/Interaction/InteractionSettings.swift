import Base

/// What the audience of a stream may do, as its host decides; everything is on unless the host says otherwise.
package struct InteractionSettings: Equatable, Sendable, Codable {
    /// Whether anybody may write, hosts too.
    package var takesComments = true
    /// By name, in the order in which pages show them; none where it is empty.
    package var reactions = ["heart"]
    /// Between two comments of one viewer, in seconds; 0 for no more than the usual limit.
    package var slowModeSeconds = 0
    /// Which of a token's tiers it takes to write, beside those on stage and who keeps order; nil where it takes none.
    package var commentTier: String?
    /// Comments that hold one of these words or phrases are refused; not for viewers' eyes.
    package var words: [String] = []
    /// What can be given; nil for nothing.
    package var gifts: GiftCatalogue?
    /// Nil, as for streams made before there was a choice, for the usual ones.
    private var shown: [Widget]?
    /// What viewers' pages show of all that; the rest goes on, and is told, without being seen there.
    package var widgets: [Widget] {
        get { shown ?? Self.usualWidgets }
        set { shown = newValue }
    }
    /// Nil for yes, as it was when there was no such choice.
    private var duels: Bool?
    /// Whether other hosts may ask this one for a duel.
    package var takesDuels: Bool {
        get { duels ?? true }
        set { duels = newValue ? nil : false }
    }

    package init() {}

    /// A part of the web client's pages that shows what an audience does.
    package enum Widget: String, Sendable, Codable, CaseIterable {
        /// As a list.
        case comments
        /// Comments that cross the picture.
        case barrage
        /// The line to write in.
        case composer
        case reactions, gifts, ranks, poll, card, duel
    }

    /// All but `barrage`, which not everybody likes over their picture.
    package static let usualWidgets = Widget.allCases.filter { $0 != .barrage }

    /// Kinds of one stream.
    package static let reactionLimit = 5
    /// In characters, of one kind's name.
    package static let reactionNameLength = 16
    /// In seconds; 0 is off.
    package static let slowModeRange = 0...120
    /// Words and phrases of one stream.
    package static let wordLimit = 200
    /// In characters, of one word or phrase.
    package static let wordLength = 50

    /// - Throws: `.invalid`, naming the first field that is out of its range.
    func validate() throws(Interaction.Refusal) {
        guard reactions.count <= Self.reactionLimit, Set(reactions).count == reactions.count,
            reactions.allSatisfy({ Self.isName($0, length: Self.reactionNameLength) })
        else { throw .invalid("reactions") }
        guard Self.slowModeRange.contains(slowModeSeconds) else { throw .invalid("slowMode") }
        guard commentTier.map(Tier.isName) ?? true else { throw .invalid("commentTier") }
        guard words.count <= Self.wordLimit, words.allSatisfy(Self.isWord) else { throw .invalid("words") }
        guard Set(widgets).count == widgets.count else { throw .invalid("widgets") }
        try gifts?.validate()
    }

    /// Whether it is 1 to `length` of a-z 0-9 -.
    static func isName(_ name: String, length: Int) -> Bool {
        (1...length).contains(name.utf8.count)
            && name.utf8.allSatisfy { (0x61...0x7A).contains($0) || (0x30...0x39).contains($0) || $0 == 0x2D }
    }

    private static func isWord(_ word: String) -> Bool {
        word.utf8.count <= 4 * wordLength && word.count <= wordLength && !WordList.words(of: word).isEmpty
    }
}

/// What somebody wants changed of the settings; what is nil stays.
package struct InteractionEdit: Equatable, Sendable {
    /// As in `InteractionSettings`.
    package var takesComments: Bool?
    /// Replaced as a whole.
    package var reactions: [String]?
    /// Within `InteractionSettings.slowModeRange`.
    package var slowModeSeconds: Int?
    /// As in `InteractionSettings`.
    package var commentTier = PatchedField<String>.keep
    /// Replaced as a whole.
    package var words: [String]?
    /// Replaced as a whole; without kinds, nothing can be given.
    package var gifts: GiftCatalogue?
    /// Replaced as a whole.
    package var widgets: [InteractionSettings.Widget]?
    /// As in `InteractionSettings`.
    package var takesDuels: Bool?

    package init() {}

    func applied(to settings: InteractionSettings) -> InteractionSettings {
        var settings = settings
        if let takesComments { settings.takesComments = takesComments }
        if let reactions { settings.reactions = reactions }
        if let slowModeSeconds { settings.slowModeSeconds = slowModeSeconds }
        commentTier.apply(to: &settings.commentTier)
        if let words { settings.words = words }
        if let takesDuels { settings.takesDuels = takesDuels }
        if let gifts { settings.gifts = gifts.kinds.isEmpty ? nil : gifts }
        if let widgets { settings.widgets = widgets }
        return settings
    }
}
