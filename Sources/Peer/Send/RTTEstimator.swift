import Base

/// Smooths the round-trip times of one peer.
/// - Source: RFC 6298 §2.2, §2.3 (TCP's filter).
package struct RTTEstimator: Equatable, Sendable {
    /// Longer samples come from a faulty or malicious peer and are dropped.
    package static let maximum = Duration.seconds(30)

    /// Nil until the first sample.
    package private(set) var smoothed: Duration?
    /// Mean deviation of samples from `smoothed`.
    package private(set) var variation = Duration.zero
    /// Nil until the first sample.
    package private(set) var latest: Duration?
    /// The shortest so far; nil until the first sample.
    package private(set) var minimum: Duration?

    package init() {}

    /// Adds a sample; returns false for one that is dropped, because it is negative or above `maximum`.
    @discardableResult
    package mutating func add(_ sample: Duration) -> Bool {
        guard sample >= .zero, sample <= Self.maximum else { return false }
        latest = sample
        minimum = min(minimum ?? sample, sample)
        guard let previous = smoothed else {
            smoothed = sample
            variation = sample / 2
            return true
        }
        let error = sample - previous
        variation += ((error < .zero ? .zero - error : error) - variation) / 4
        smoothed = previous + error / 8
        return true
    }
}
