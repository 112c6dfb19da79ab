/// A rectangle of a picture, in pixels; all values are even, so that chroma samples are not split.
package struct TileFrame: Equatable, Sendable {
    /// From the left.
    package var x: Int
    /// From the top.
    package var y: Int
    package var width: Int
    package var height: Int

    package init(x: Int, y: Int, width: Int, height: Int) {
        self.x = x
        self.y = y
        self.width = width
        self.height = height
    }
}

/// The positions of the tiles; they depend only on the number of tiles and the canvas.
package enum TileLayout {
    /// Most tiles shown at the same time.
    package static let maximumTiles = 9
    /// Pixels between tiles, and around them.
    static let gap = 8

    /// The positions of `count` tiles, in order.
    package static func frames(
        _ count: Int, width: Int, height: Int, layout: CompositionSettings.Layout
    ) -> [TileFrame] {
        let count = min(max(count, 0), maximumTiles)
        switch (layout, count) {
        case (_, 0): return []
        case (_, 1): return [TileFrame(x: 0, y: 0, width: width & ~1, height: height & ~1)]
        case (.spotlight, 3...): return spotlight(count, width: width, height: height)
        default: return grid(count, in: TileFrame(x: 0, y: 0, width: width, height: height))
        }
    }

    /// Columns of a grid; two tiles are side by side in a wide picture, and one above the other in a tall one.
    static func columns(_ count: Int, isWide: Bool) -> Int {
        let (more, fewer) =
            switch count {
            case ...1: (1, 1)
            case 2: (2, 1)
            case 3, 4: (2, 2)
            case 5, 6: (3, 2)
            default: (3, 3)
            }
        return isWide ? more : fewer
    }

    /// Tiles of equal size, in rows.
    private static func grid(_ count: Int, in area: TileFrame) -> [TileFrame] {
        let columns = columns(count, isWide: area.width >= area.height)
        let rows = (count + columns - 1) / columns
        let width = ((area.width - gap * (columns + 1)) / columns) & ~1
        let height = ((area.height - gap * (rows + 1)) / rows) & ~1
        return (0..<count).map { index in
            let row = index / columns
            let inRow = min(columns, count - row * columns)
            // An incomplete row is centered.
            let rowWidth = inRow * width + (inRow + 1) * gap
            let left = (area.width - rowWidth) / 2 + gap
            return TileFrame(
                x: (area.x + left + (index % columns) * (width + gap)) & ~1,
                y: (area.y + gap + row * (height + gap)) & ~1, width: width, height: height)
        }
    }

    /// The first tile takes four fifths; the others share a strip.
    private static func spotlight(_ count: Int, width: Int, height: Int) -> [TileFrame] {
        let isWide = width >= height
        let others = count - 1
        let strip = ((isWide ? width : height) / 5) & ~1
        let length = isWide ? height : width
        let share = (length - gap * (others + 1)) / others
        let proportional = isWide ? strip * 9 / 16 : strip * 16 / 9
        let side = min(share, proportional) & ~1
        let start = (length - others * side - (others - 1) * gap) / 2
        var frames = [
            isWide
                ? TileFrame(
                    x: gap, y: gap, width: (width - strip - 3 * gap) & ~1, height: (height - 2 * gap) & ~1)
                : TileFrame(
                    x: gap, y: gap, width: (width - 2 * gap) & ~1, height: (height - strip - 3 * gap) & ~1)
        ]
        for index in 0..<others {
            let along = (start + index * (side + gap)) & ~1
            frames.append(
                isWide
                    ? TileFrame(x: (width - strip - gap) & ~1, y: along, width: strip, height: side)
                    : TileFrame(x: along, y: (height - strip - gap) & ~1, width: side, height: strip))
        }
        return frames
    }
}

/// Assigns people to tiles.
///
/// While there are tiles for everyone, tiles follow the order of arrival. Beyond that, the latest speakers are shown,
/// and people who stay visible keep their tile.
package struct TileAssignment: Equatable, Sendable {
    /// IDs in the order of the tiles.
    package private(set) var places: [String] = []

    package init() {}

    /// Updates the assignment.
    /// - Parameters:
    ///   - ids: of everyone, the latest speaker first.
    ///   - arrived: of everyone, in order of arrival; nil if it is unknown, and newcomers are last.
    ///   - first: gets the first tile if it is visible (the large one of a spotlight).
    package mutating func update(_ ids: [String], arrived: [String]? = nil, first: String? = nil) {
        let shown = Array(ids.prefix(TileLayout.maximumTiles))
        if ids.count <= TileLayout.maximumTiles {
            places.removeAll { !shown.contains($0) }
        } else {
            // A newcomer takes exactly the tile of a person who is no longer shown, so that no other tile moves.
            var coming = shown.filter { !places.contains($0) }
            for index in places.indices where !shown.contains(places[index]) {
                places[index] = coming.isEmpty ? "" : coming.removeFirst()
            }
            places.removeAll { $0.isEmpty }
        }
        let order = arrived ?? places + shown.filter { !places.contains($0) }
        for (rank, id) in order.enumerated() where shown.contains(id) && !places.contains(id) {
            // A person whose picture is late keeps their rank: they are inserted before the first later arrival.
            let later = places.firstIndex { other in order.dropFirst(rank + 1).contains(other) }
            places.insert(id, at: later ?? places.endIndex)
        }
        guard let first, let index = places.firstIndex(of: first), index > 0 else { return }
        places.swapAt(0, index)
    }
}
