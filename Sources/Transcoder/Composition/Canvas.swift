import Codecs

/// The composed picture: tiles, each redrawn only when its content changes.
struct Canvas {
    /// The content of one tile.
    struct Content {
        var name: String
        /// Nil for a card with the initials.
        var picture: Picture?
        var isSpeaking: Bool
        /// A shared screen is shown whole, so that its text is legible.
        var isScreen: Bool
    }

    /// Frame around the tile of a person who is speaking.
    private static let accent = DrawingColor(rgb: 0x3D_DC_84)
    /// Colors of cards; a name always has the same one.
    private static let cards: [UInt32] = [0x34_49_66, 0x4B_3A_5E, 0x2F_52_4A, 0x5A_43_2E, 0x52_33_3F]

    private(set) var picture: Picture
    private let background: DrawingColor
    /// Rendered texts.
    ///
    /// Text layout is expensive, and labels rarely change.
    private var labels: [LabelKey: TextMask] = [:]

    private struct LabelKey: Hashable {
        let text: String
        let size: Int
        let width: Int
    }

    /// - Parameter background: 0xRRGGBB.
    init(width: Int, height: Int, background: UInt32) throws(CodecError) {
        picture = try Picture(width: width & ~1, height: height & ~1)
        self.background = DrawingColor(rgb: background)
        clear()
    }

    /// Erases everything; all tiles have to be drawn again.
    mutating func clear() {
        picture.fill(x: 0, y: 0, width: picture.width, height: picture.height, with: background)
    }

    /// Draws one tile: picture or card, frame, and label.
    mutating func draw(_ content: Content, in tile: TileFrame) {
        if let shown = content.picture {
            if content.isScreen {
                picture.fill(x: tile.x, y: tile.y, width: tile.width, height: tile.height, with: background)
                try? picture.fit(x: tile.x, y: tile.y, width: tile.width, height: tile.height, with: shown)
            } else {
                try? picture.cover(x: tile.x, y: tile.y, width: tile.width, height: tile.height, with: shown)
            }
        } else {
            drawCard(content.name, in: tile)
        }
        if content.isSpeaking { drawFrame(tile) }
        drawLabel(content.name, in: tile)
    }

    /// Draws a card with the initials of a name.
    private mutating func drawCard(_ name: String, in tile: TileFrame) {
        let sum = name.utf8.reduce(UInt32(7)) { $0 &* 31 &+ UInt32($1) }
        let color = DrawingColor(rgb: Self.cards[Int(sum % UInt32(Self.cards.count))])
        picture.fill(x: tile.x, y: tile.y, width: tile.width, height: tile.height, with: color)
        let initials = name.split(separator: " ").prefix(2).compactMap(\.first).map(String.init).joined()
        let size = min(max(min(tile.width, tile.height) / 3, 16), 160)
        guard let mask = mask(initials.uppercased(), size: size, width: tile.width) else { return }
        picture.draw(
            mask, x: tile.x + (tile.width - mask.width) / 2, y: tile.y + (tile.height - mask.height) / 2)
    }

    private mutating func drawFrame(_ tile: TileFrame) {
        let edge = tile.height >= 300 ? 6 : 4
        picture.fill(x: tile.x, y: tile.y, width: tile.width, height: edge, with: Self.accent)
        picture.fill(
            x: tile.x, y: tile.y + tile.height - edge, width: tile.width, height: edge, with: Self.accent)
        picture.fill(x: tile.x, y: tile.y, width: edge, height: tile.height, with: Self.accent)
        picture.fill(
            x: tile.x + tile.width - edge, y: tile.y, width: edge, height: tile.height, with: Self.accent)
    }

    /// Draws the name into the lower left corner, on a darkened area.
    private mutating func drawLabel(_ name: String, in tile: TileFrame) {
        let size = min(max(tile.height / 16, 12), 26)
        guard let mask = mask(name, size: size, width: tile.width * 3 / 4) else { return }
        let (inset, padding) = (10, 6)
        let height = (mask.height + padding) & ~1
        let y = tile.y + tile.height - height - inset
        picture.shade(x: tile.x + inset, y: y, width: mask.width + 2 * padding, height: height)
        picture.draw(mask, x: tile.x + inset + padding, y: y + padding / 2)
    }

    /// Renders a text, or returns the cached mask; nil if there is nothing to draw.
    private mutating func mask(_ text: String, size: Int, width: Int) -> TextMask? {
        let key = LabelKey(text: text, size: size, width: width)
        if let known = labels[key] { return known }
        guard let mask = try? TextMask(text, size: size, maximumWidth: max(width, 8)) else { return nil }
        // Bounds the cache where names change often.
        if labels.count >= 64 { labels.removeAll() }
        labels[key] = mask
        return mask
    }
}
