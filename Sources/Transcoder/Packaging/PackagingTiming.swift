/// The lengths of segments and their parts.
package struct PackagingTiming: Equatable, Sendable {
    /// Rate of encoded pictures.
    package static let framesPerSecond = 30
    /// Longest segment of encoded pictures, in milliseconds.
    package static let segmentMilliseconds = 2_000
    /// Permitted lengths of parts, in milliseconds: whole pictures per part, and whole parts per segment.
    package static let partLengths = [200, 400, 500, 1_000]
    /// Parts of half a second.
    package static let usual = PackagingTiming()

    /// Length of a part, in milliseconds.
    package let partMilliseconds: Int

    private init() { partMilliseconds = 500 }

    /// Nil for a length that is none of `partLengths`.
    package init?(partMilliseconds: Int) {
        guard Self.partLengths.contains(partMilliseconds) else { return nil }
        self.partMilliseconds = partMilliseconds
    }

    /// Encoded pictures per part.
    package var framesPerPart: Int { partMilliseconds * Self.framesPerSecond / 1_000 }
    /// Parts per encoded segment.
    package var partsPerSegment: Int { Self.segmentMilliseconds / partMilliseconds }
    /// Parts in the first segment of a time line.
    ///
    /// It is one second long, or slightly more, because players that do not support parts wait for it.
    package var partsOfFirstSegment: Int { (1_000 + partMilliseconds - 1) / partMilliseconds }
}
