import Base

/// Something that a shop sold to a member of the audience, as it is shown to all.
///
/// The shop handles the money. The server remembers what was shown, with the price at that time.
package struct Gift: Equatable, Sendable, Codable {
    /// A gift as a shop reports it.
    package struct Draft: Equatable, Sendable {
        /// Chosen by the shop; reporting the same key again means the same gift.
        package let key: String
        /// The giver's identity as the shop knows it: the subject of their token.
        package let giver: ParticipantID
        /// Display name; nil if the giver has none.
        package let name: String?
        /// The id of a gift in the stream's catalogue.
        package let kind: String
        /// How many are given together; within `countRange`.
        package let count: Int
        /// Price of one, in the smallest unit of the currency; within `GiftCatalogue.priceRange`.
        package let price: Int
        /// The currency of the stream's catalogue.
        package let currency: String

        /// A report whose values are checked later, when it is decided.
        package init(
            key: String, giver: ParticipantID, name: String?, kind: String, count: Int, price: Int,
            currency: String
        ) {
            self.key = key
            self.giver = giver
            self.name = name
            self.kind = kind
            self.count = count
            self.price = price
            self.currency = currency
        }
    }

    /// Its number in the stream: counts from 1, in the order in which gifts are shown.
    package let number: Int
    /// Chosen by the shop; unique among the gifts of a stream.
    package let key: String
    /// Who gave it.
    package let giver: ParticipantID
    /// Display name, cleaned; nil if the giver has none.
    package let name: String?
    /// The id of a gift in the stream's catalogue.
    package let kind: String
    /// How many were given together; within `countRange`.
    package let count: Int
    /// Price of one at that time, in the smallest unit of the currency.
    package let price: Int
    /// The catalogue's currency at that time.
    package let currency: String
    /// How many of this kind the giver has given in a row, including these.
    package let combo: Int
    /// When it was accepted, by the server's clock.
    package let at: WallTime

    /// How many may be given together.
    package static let countRange = 1...10_000
    /// Most characters of a giver's name.
    package static let nameLength = 60

    /// Whether a shop's repeated report is about this gift, with nothing changed.
    package func isSame(as draft: Draft) -> Bool {
        giver == draft.giver && name == (try? Self.name(of: draft)) && kind == draft.kind
            && count == draft.count && price == draft.price && currency == draft.currency
    }

    /// The giver's name, cleaned like a comment.
    /// - Throws: `.invalid` if it is too long or nothing of it is visible.
    static func name(of draft: Draft) throws(Interaction.Refusal) -> String? {
        guard let written = draft.name else { return nil }
        guard let text = try? CommentText(written).text, text.count <= nameLength else {
            throw .invalid("name")
        }
        return text
    }
}

/// The gifts that can be given in a stream.
package struct GiftCatalogue: Equatable, Sendable, Codable {
    /// One kind of gift.
    package struct Kind: Equatable, Sendable, Codable {
        /// 1 to `idLength` characters of a-z 0-9 -.
        package let id: String
        /// Display name.
        package let name: String
        /// An emoji, or the address of a picture: `https://…`, or a path on this server.
        package let picture: String
        /// Price of one, in the smallest unit of the currency; within `priceRange`.
        package let price: Int

        /// A kind whose values are checked by `GiftCatalogue.validate`.
        package init(id: String, name: String, picture: String, price: Int) {
            self.id = id
            self.name = name
            self.picture = picture
            self.price = price
        }
    }

    /// An ISO 4217 code, or the app's own of 1 to 8 characters of A-Z.
    ///
    /// The same for all kinds, so that sums have a meaning.
    package var currency: String
    /// In the order in which pages show them.
    package var kinds: [Kind]

    /// A catalogue whose values are checked by `validate`.
    package init(currency: String, kinds: [Kind]) {
        self.currency = currency
        self.kinds = kinds
    }

    /// Most kinds in one catalogue.
    package static let limit = 30
    /// Most characters of an id.
    package static let idLength = 32
    /// Most characters of a display name.
    package static let nameLength = 30
    /// Most bytes of a picture's address.
    package static let pictureLength = 300
    /// Most characters of an emoji.
    private static let emojiLength = 2
    /// Gifts may be free; the highest price is a million, in a currency with two decimals.
    package static let priceRange = 0...100_000_000

    /// - Throws: `.invalid` if anything is out of range.
    func validate() throws(Interaction.Refusal) {
        guard (1...8).contains(currency.utf8.count), currency.utf8.allSatisfy({ (0x41...0x5A).contains($0) }),
            kinds.count <= Self.limit, Set(kinds.map(\.id)).count == kinds.count,
            kinds.allSatisfy(Self.isSound)
        else { throw .invalid("gifts") }
    }

    private static func isSound(_ kind: Kind) -> Bool {
        InteractionSettings.isName(kind.id, length: idLength) && isClean(kind.name, length: nameLength)
            && isPicture(kind.picture) && priceRange.contains(kind.price)
    }

    /// Whether cleaning would leave the text as it is.
    private static func isClean(_ text: String, length: Int) -> Bool {
        text.count <= length && (try? CommentText(text))?.text == text
    }

    private static func isPicture(_ text: String) -> Bool {
        let isEmoji = text.utf8.allSatisfy { $0 >= 0x80 } && isClean(text, length: emojiLength)
        return isEmoji || PictureAddress.isSound(text, length: pictureLength)
    }
}
