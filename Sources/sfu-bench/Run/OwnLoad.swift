import Base
import Net

/// What this tool had used of the machine until one moment.
struct OwnLoad: Sendable {
    var time: MonotonicTime
    /// Generator threads by name.
    var threads: [String: ProcessFiles.ThreadTime]
    var processNanoseconds: Int64

    static func now() -> OwnLoad {
        OwnLoad(
            time: MonotonicClock.now(), threads: ProcessFiles.ownThreads(prefix: Generator.threadPrefix),
            processNanoseconds: ProcessorClock.processNanoseconds())
    }

    /// Nanoseconds since an earlier moment, by the wall clock.
    func elapsed(since before: OwnLoad) -> Double {
        max(Double(time.nanoseconds(since: before.time)), 1e6)
    }

    /// What was used since an earlier moment.
    /// - Parameter processors: CPUs that the process may run on.
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

/// Finds the moment of a run in which the tool was busiest.
///
/// A storm is over in a second or two, and what comes before and after it is quiet: the mean says nothing of whether
/// handshakes waited for the server or for the tool.
struct BusiestMoment: Sendable {
    /// Long enough to be no accident, in nanoseconds.
    static let length: Int64 = 300_000_000

    private let processors: Int
    /// Of the latest moment, and of a little more than that.
    private var loads: [OwnLoad] = []
    private(set) var use: Report.GeneratorUse?

    init(processors: Int) {
        self.processors = processors
    }

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
    /// The share of a thread's or of the process' time that was used, whichever is greater.
    var busiest: Double { max(threads.map(\.busy).max() ?? 0, processorShare) }

    /// Puts the shares of the busiest moment in the place of those of the whole time.
    mutating func takePeak(_ peak: Report.GeneratorUse) {
        threads = peak.threads
        processorShare = peak.processorShare
        isPeak = true
    }
}
