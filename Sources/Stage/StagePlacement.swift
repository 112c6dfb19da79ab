import Base

/// How far ahead lists show a stream, as an operator decides; no host has a say in it.
package struct StagePlacement: Equatable, Sendable, Codable {
    /// Pinned streams come first, lower numbers before higher ones; nil for a stream that is not pinned.
    package var pinned: Int?
    /// Steps ahead of where the stream would stand, or behind if negative.
    package var boost = 0

    package init() {}

    /// Of `pinned`.
    package static let pinnedRange = 0...1_000_000
    /// Of `boost`, in steps.
    package static let boostRange = -1_000...1_000

    /// What an operator wants changed; what is nil stays.
    package struct Edit: Equatable, Sendable {
        /// Cleared, the stream is not pinned.
        package var pinned = PatchedField<Int>.keep
        /// Within `boostRange`.
        package var boost: Int?

        package init() {}

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
