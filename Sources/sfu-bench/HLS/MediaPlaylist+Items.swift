/// Positions in a playlist, and what a player finds there.
extension MediaPlaylist {
    /// A part of a segment; part 0 stands for the whole segment if it has no parts.
    struct Position: Equatable, Sendable {
        /// `number` is the media sequence number; parts count from 0.
        var number: Int
        var part: Int
    }

    /// A part or a segment that can be loaded.
    struct Listed: Equatable, Sendable {
        let position: Position
        let url: String
        /// In nanoseconds.
        let duration: Int64
        /// The initialization segment that it needs; nil if the playlist names none.
        let initialization: String?
        /// When its first picture was captured, in milliseconds since 1970; nil if the playlist has no date.
        let date: Int64?
        /// The position behind it.
        let next: Position
    }

    enum Item: Equatable, Sendable {
        case listed(Listed)
        /// It is the next part at this address; a request for it waits until it exists.
        case hinted(String)
        /// It does not exist yet.
        case awaited
        /// It is no longer available, or never was.
        case gone
    }

    /// The playlist as players without low latency see it: whole segments, and a server that does not block.
    var ofWholeSegments: MediaPlaylist {
        var result = self
        result.segments.removeAll { $0.url == nil }
        for index in result.segments.indices { result.segments[index].parts = [] }
        (result.partTarget, result.partHoldBack, result.hint) = (nil, nil, nil)
        (result.canBlock, result.canSkip) = (false, false)
        return result
    }

    /// The first position that is not listed, for which a blocking reload waits.
    var end: Position {
        guard let last = segments.last else { return Position(number: firstNumber, part: 0) }
        return last.url == nil
            ? Position(number: last.number, part: last.parts.count)
            : Position(number: last.number + 1, part: 0)
    }

    /// What a player finds at a position.
    func item(at position: Position) -> Item {
        let first = segments.first?.number ?? firstNumber
        guard position.number >= first, position.part >= 0 else { return .gone }
        guard position.number - first < segments.count else {
            guard position == end else { return position.number == end.number + 1 ? .awaited : .gone }
            return unlisted
        }
        let segment = segments[position.number - first]
        if position.part < segment.parts.count {
            let part = segment.parts[position.part]
            let before = segment.parts[..<position.part].reduce(0) { $0 + $1.duration }
            return .listed(
                Listed(
                    position: position, url: part.url, duration: part.duration,
                    initialization: segment.initialization,
                    date: segment.date.map { $0 + before / 1_000_000 },
                    next: Position(number: position.number, part: position.part + 1)))
        }
        guard let url = segment.url else {
            return position.part == segment.parts.count ? unlisted : .gone
        }
        guard segment.parts.isEmpty else {
            // The part behind a segment's last one is the first of the next segment (§6.2.5.2).
            return item(at: Position(number: position.number + 1, part: 0))
        }
        guard position.part == 0 else { return .gone }
        return .listed(
            Listed(
                position: position, url: url, duration: segment.duration,
                initialization: segment.initialization, date: segment.date,
                next: Position(number: position.number + 1, part: 0)))
    }

    /// What the position at `end` is: hinted, awaited, or gone if the stream is over.
    private var unlisted: Item {
        guard !hasEnded else { return .gone }
        return hint.map { .hinted($0) } ?? .awaited
    }

    /// Where a player starts: the first item to load, and how far into that it begins to show, in nanoseconds.
    ///
    /// It starts as far from the end as the server wants, or else the standard, and then goes back to where a decoder
    /// can begin.
    /// - Source: RFC 8216bis §4.4.3.8 (PART-HOLD-BACK, HOLD-BACK), §6.3.3.
    var start: (position: Position, offset: Int64)? {
        let distance =
            hasParts ? partHoldBack ?? 3 * (partTarget ?? 0) : holdBack ?? 3 * targetDuration
        var begins: [(position: Position, time: Int64)] = []
        var time: Int64 = 0
        for segment in segments {
            guard !segment.parts.isEmpty else {
                begins.append((Position(number: segment.number, part: 0), time))
                time += segment.duration
                continue
            }
            for (index, part) in segment.parts.enumerated() {
                if part.isIndependent { begins.append((Position(number: segment.number, part: index), time)) }
                time += part.duration
            }
        }
        // A short playlist may have nothing that is old enough: then it starts with the first item.
        let wanted = max(time - distance, 0)
        guard let begin = begins.last(where: { $0.time <= wanted }) ?? begins.first else { return nil }
        return (begin.position, max(wanted - begin.time, 0))
    }

    /// Whether the end of the playlist has parts.
    private var hasParts: Bool { partTarget != nil && segments.last?.parts.isEmpty == false }
}
