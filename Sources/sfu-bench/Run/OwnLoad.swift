import Base
import Net

/// The CPU time that this tool had used at one moment.
struct OwnLoad: Sendable {
    var time: MonotonicTime
    /// Times of the generator threads, by name.
    var threads: [String: ProcessFiles.ThreadTime]
    /// CPU time of the whole process.
    var processNanoseconds: Int64

    static func now() -> OwnLoad {
        OwnLoad(
            time: MonotonicClock.now(), threads: ProcessFiles.ownThreads(prefix: Generator.threadPrefix),
            processNanoseconds: ProcessorClock.processNanoseconds())
    }

    /// Nanoseconds of elapsed time since an earlier moment; at least 1 ms, because it is divided by.
    func elapsed(since before: OwnLoad) -> Double {
        max(Double(time.nanoseconds(since: before.time)), 1e6)
    }

    /// The load since an earlier moment.
    /// - Parameter processors: how many CPUs the process may run on.
    func use(since before: OwnLoad, processors: Int, isPinned: Bool = false) -> Report.GeneratorUse {
        let elapsed = elapsed(since: before)
        let threads = threads.keys.sorted().compactMap { name -> Report.GeneratorUse.Thread? in
            guard let after = self.threads[name], let before = before.threads[name] else { return nil }
            return Report.GeneratorUse.Thread(
                name: name, busy: Double(after.ran - before.ran) / elapsed,
                waiting: Double(after.waited - before.waited) / elapsed)
        }
        let ran = Double(processNanoseconds - before.processNanoseconds)
        return Report.GeneratorUse(
            threads: threads, isPinned: isPinned, overflowed: 0, unsent: 0, cpuSeconds: ran / 1e9,
            processorShare: ran / elapsed / Double(max(processors, 1)))
    }
}

/// Finds the time of a run at which the tool was busiest.
///
/// A storm is over in a second or two, and it is quiet before and after it: the mean does not show whether handshakes
/// waited for the server or for the tool.
struct BusiestMoment: Sendable {
    /// Of the time that is looked at, in nanoseconds: long enough that a short spike does not decide.
    static let length: Int64 = 300_000_000

    private let processors: Int
    /// Samples of the latest `length` nanoseconds, and the last one before them.
    private var loads: [OwnLoad] = []
    /// The highest load so far; nil until `length` has passed.
    private(set) var use: Report.GeneratorUse?

    init(processors: Int) {
        self.processors = processors
    }

    /// Adds a sample, and compares the load over the latest `length` with the highest so far.
    mutating func add(_ load: OwnLoad) {
        loads.append(load)
        let isOldEnough = { (other: OwnLoad) in load.time.nanoseconds(since: other.time) >= Self.length }
        guard let start = loads.lastIndex(where: isOldEnough) else { return }
        loads.removeFirst(start)
        let use = load.use(since: loads[0], processors: processors)
        if use.busiest > self.use?.busiest ?? -1 { self.use = use }
    }
}

extension Report.GeneratorUse {
    /// The busiest thread's share of a CPU or the process's share of all its CPUs, whichever is greater; 0 to 1.
    var busiest: Double { max(threads.map(\.busy).max() ?? 0, processorShare) }

    /// Replaces the shares of the whole interval by those of the busiest moment.
    mutating func takePeak(_ peak: Report.GeneratorUse) {
        threads = peak.threads
        processorShare = peak.processorShare
        isPeak = true
    }
}
