/// How long segments and their parts are.
package struct PackagingTiming: Equatable, Sendable {
    /// Of pictures that are encoded for it.
    package static let framesPerSecond = 30
    /// Of the longest segment of those; in milliseconds.
    package static let segmentMilliseconds = 2_000
    /// In milliseconds; each has whole pictures, and a segment whole parts.
    package static let partLengths = [200, 400, 500, 1_000]
    /// Half a second.
    package static let usual = PackagingTiming()

    /// Of a part; in milliseconds.
    package let partMilliseconds: Int

    private init() { partMilliseconds = 500 }

    /// Nil for a length that is none of `partLengths`.
    package init?(partMilliseconds: Int) {
        guard Self.partLengths.contains(partMilliseconds) else { return nil }
        self.partMilliseconds = partMilliseconds
    }

    package var framesPerPart: Int { partMilliseconds * Self.framesPerSecond / 1_000 }
    package var partsPerSegment: Int { Self.segmentMilliseconds / partMilliseconds }
    /// The first one of a time line is a second long, or little more, because players that know no parts wait for it.
    package var partsOfFirstSegment: Int { (1_000 + partMilliseconds - 1) / partMilliseconds }
}
