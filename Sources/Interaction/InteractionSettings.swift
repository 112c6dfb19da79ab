import Base

/// What a stream's audience may do, as its host has decided; everything is on unless the host switches it off.
package struct InteractionSettings: Equatable, Sendable, Codable {
    /// Whether anyone may comment, hosts included.
    package var takesComments = true
    /// The names of the reactions, in the order in which pages show them; empty for none.
    package var reactions = ["heart"]
    /// Seconds between two comments of a viewer; 0 for the usual rate limit only.
    package var slowModeSeconds = 0
    /// The tier that commenting requires of viewers, but not of hosts, speakers and moderators; nil for none.
    package var commentTier: String?
    /// Comments with one of these words or phrases are refused; viewers must not see the list.
    package var words: [String] = []
    /// The gifts that can be given; nil for none.
    package var gifts: GiftCatalogue?
    /// Nil for the usual ones, also in settings from before there was a choice.
    private var shown: [Widget]?
    /// Which parts viewers' pages show; the others keep working, and notifications about them continue.
    package var widgets: [Widget] {
        get { shown ?? Self.usualWidgets }
        set { shown = newValue }
    }
    /// Nil for true, also in settings from before there was a choice.
    private var duels: Bool?
    /// Whether other hosts may invite this one to a duel.
    package var takesDuels: Bool {
        get { duels ?? true }
        set { duels = newValue ? nil : false }
    }

    /// The settings of a new stream.
    package init() {}

    /// A part of the web pages that shows something of the audience.
    package enum Widget: String, Sendable, Codable, CaseIterable {
        /// Comments as a list.
        case comments
        /// Comments moving across the picture.
        case barrage
        /// The field to write comments in.
        case composer
        case reactions, gifts, ranks, poll, card, duel
    }

    /// All but `barrage`, because not every host wants comments over the picture.
    package static let usualWidgets = Widget.allCases.filter { $0 != .barrage }

    /// Most reactions of a stream.
    package static let reactionLimit = 5
    /// Most characters of a reaction's name.
    package static let reactionNameLength = 16
    /// Seconds between two comments of a viewer; 0 is off.
    package static let slowModeRange = 0...120
    /// Most words and phrases of a stream.
    package static let wordLimit = 200
    /// Most characters of a word or phrase.
    package static let wordLength = 50

    /// - Throws: `.invalid` with the name of the first field that is out of range.
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

    /// Whether it consists of 1 to `length` characters of a-z 0-9 -.
    static func isName(_ name: String, length: Int) -> Bool {
        (1...length).contains(name.utf8.count)
            && name.utf8.allSatisfy { (0x61...0x7A).contains($0) || (0x30...0x39).contains($0) || $0 == 0x2D }
    }

    /// Whether it is short enough and contains a word that can be searched for.
    private static func isWord(_ word: String) -> Bool {
        word.utf8.count <= 4 * wordLength && word.count <= wordLength && !WordList.words(of: word).isEmpty
    }
}

/// A requested change of the settings; nil leaves a field as it is.
package struct InteractionEdit: Equatable, Sendable {
    /// As in `InteractionSettings`.
    package var takesComments: Bool?
    /// Replaces the whole list.
    package var reactions: [String]?
    /// Within `InteractionSettings.slowModeRange`.
    package var slowModeSeconds: Int?
    /// As in `InteractionSettings`.
    package var commentTier = PatchedField<String>.keep
    /// Replaces the whole list.
    package var words: [String]?
    /// Replaces the whole catalogue; one without kinds switches gifts off.
    package var gifts: GiftCatalogue?
    /// Replaces the whole list.
    package var widgets: [InteractionSettings.Widget]?
    /// As in `InteractionSettings`.
    package var takesDuels: Bool?

    /// An edit that changes nothing.
    package init() {}

    /// The settings after the edit; they are not validated here.
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
