import Base

/// An operator's decision on where lists show a stream; hosts cannot change it.
package struct StagePlacement: Equatable, Sendable, Codable {
    /// Pinned streams come first, lower numbers before higher ones; nil for a stream that is not pinned.
    package var pinned: Int?
    /// Steps by which the stream moves ahead, or back if negative.
    package var boost = 0

    package init() {}

    /// The range of `pinned`.
    package static let pinnedRange = 0...1_000_000
    /// The range of `boost`, in steps.
    package static let boostRange = -1_000...1_000

    /// A requested change; nil fields stay unchanged.
    package struct Edit: Equatable, Sendable {
        /// Cleared: the stream is not pinned.
        package var pinned = PatchedField<Int>.keep
        /// Within `boostRange`.
        package var boost: Int?

        package init() {}

        /// The placement with this change.
        /// - Throws: `.invalid`, naming the field that is out of its range.
        func applied(to placement: StagePlacement) throws(Rejection) -> StagePlacement {
            var placement = placement
            pinned.apply(to: &placement.pinned)
            if let boost { placement.boost = boost }
            guard placement.pinned.map(pinnedRange.contains) ?? true else { throw .invalid("pinned") }
            guard boostRange.contains(placement.boost) else { throw .invalid("boost") }
            return placement
        }
    }
}
