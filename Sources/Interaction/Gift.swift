import Base

/// Something that a shop sold to one of the audience, as everybody is shown it.
///
/// The shop keeps the money. What is kept here is what was shown, with the price as it was then.
package struct Gift: Equatable, Sendable, Codable {
    /// What a shop says of a gift.
    package struct Draft: Equatable, Sendable {
        /// The shop's own; the same key once more is the same gift.
        package let key: String
        /// As the shop knows them: the subject of their token.
        package let giver: ParticipantID
        /// For people; nil where the giver has none.
        package let name: String?
        /// One of the stream's catalogue, by its id.
        package let kind: String
        /// How many at once; within `countRange`.
        package let count: Int
        /// Of one, in the smallest unit of the currency; within `GiftCatalogue.priceRange`.
        package let price: Int
        /// That of the stream's catalogue.
        package let currency: String

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

    /// Which one it is in its stream: from 1 on, in the order in which they are shown.
    package let number: Int
    /// The shop's own; no two gifts of a stream have the same.
    package let key: String
    /// Who gave it.
    package let giver: ParticipantID
    /// For people, cleaned; nil where the giver has none.
    package let name: String?
    /// One of the stream's catalogue, by its id.
    package let kind: String
    /// How many at once; within `countRange`.
    package let count: Int
    /// Of one, in the smallest unit of the currency, as it was then.
    package let price: Int
    /// As in the catalogue then.
    package let currency: String
    /// How many of this kind its giver has given in a row, these included.
    package let combo: Int
    /// By the server's clock.
    package let at: WallTime

    /// Of one gift.
    package static let countRange = 1...10_000
    /// In characters, of a giver's name.
    package static let nameLength = 60

    /// Whether a shop that says this means this gift.
    package func isSame(as draft: Draft) -> Bool {
        giver == draft.giver && name == (try? Self.name(of: draft)) && kind == draft.kind
            && count == draft.count && price == draft.price && currency == draft.currency
    }

    /// Cleaned, as comments are.
    static func name(of draft: Draft) throws(Interaction.Refusal) -> String? {
        guard let written = draft.name else { return nil }
        guard let text = try? CommentText(written).text, text.count <= nameLength else {
            throw .invalid("name")
        }
        return text
    }
}

/// What can be given in a stream.
package struct GiftCatalogue: Equatable, Sendable, Codable {
    /// One gift that can be given.
    package struct Kind: Equatable, Sendable, Codable {
        /// 1 to `idLength` of a-z 0-9 -.
        package let id: String
        /// For people.
        package let name: String
        /// An emoji, or the address of a picture: `https://…`, or a path on this server.
        package let picture: String
        /// In the smallest unit of the currency; within `priceRange`.
        package let price: Int

        package init(id: String, name: String, picture: String, price: Int) {
            self.id = id
            self.name = name
            self.picture = picture
            self.price = price
        }
    }

    /// By ISO 4217, or the app's own, of 1 to 8 of A-Z; one for all, so that a sum means something.
    package var currency: String
    /// In the order in which pages show them.
    package var kinds: [Kind]

    package init(currency: String, kinds: [Kind]) {
        self.currency = currency
        self.kinds = kinds
    }

    /// Kinds of one stream.
    package static let limit = 30
    /// In characters.
    package static let idLength = 32
    /// In characters.
    package static let nameLength = 30
    /// In bytes, of an address.
    package static let pictureLength = 300
    /// In characters, of an emoji.
    private static let emojiLength = 2
    /// Free ones too; a million at most, with two digits behind the point.
    package static let priceRange = 0...100_000_000

    /// - Throws: `.invalid` for what is out of its range.
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

    private static func isClean(_ text: String, length: Int) -> Bool {
        text.count <= length && (try? CommentText(text))?.text == text
    }

    private static func isPicture(_ text: String) -> Bool {
        let isEmoji = text.utf8.allSatisfy { $0 >= 0x80 } && isClean(text, length: emojiLength)
        return isEmoji || PictureAddress.isSound(text, length: pictureLength)
    }
}
