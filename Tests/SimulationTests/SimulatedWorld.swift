import Base
import SimulatedLibraries

/// What C libraries take for the time and for random while a simulation runs: both come from it.
///
/// It holds for the calling thread and only while something of the simulation is called, so that tests on other
/// threads, and later ones on this, are in worlds of their own.
final class SimulatedWorld {
    /// 2023-11-14, as the simulations' wall clocks have it.
    private static let start: Int64 = 1_700_000_000_000_000

    private let libraries: UnsafeMutablePointer<simulated_libraries>

    init(seed: UInt64) {
        libraries = .allocate(capacity: 1)
        libraries.initialize(to: simulated_libraries(random: seed, microseconds: Self.start))
    }

    deinit {
        libraries.deallocate()
    }

    /// Calls something of the simulation.
    func run<Result, Failure: Error>(
        at now: MonotonicTime, _ body: () throws(Failure) -> Result
    ) throws(Failure) -> Result {
        libraries.pointee.microseconds = Self.start + now.nanoseconds / 1_000
        let before = simulated_libraries_enter(libraries)
        defer { _ = simulated_libraries_enter(before) }
        return try body()
    }
}
