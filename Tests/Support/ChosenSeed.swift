import Glibc

/// The seed that a test is to be repeated with, from the environment.
package enum ChosenSeed {
    /// `ROSTRUM_SEED`; nil where each test takes its own.
    package static let value: UInt64? = getenv("ROSTRUM_SEED").flatMap { UInt64(String(cString: $0)) }

    /// `seed`, or the one that was chosen.
    package static func or(_ seed: UInt64) -> UInt64 { value ?? seed }

    /// The arguments of a test over many seeds: these, or the one that was chosen.
    package static func or(_ seeds: ClosedRange<UInt64>) -> [UInt64] { value.map { [$0] } ?? Array(seeds) }
}
