import Base
import Foundation
import Net
import Synchronization

/// All measurements of one moment; the difference of two marks makes an interval.
struct Mark: Sendable {
    var time: MonotonicTime
    var snapshot: Snapshot
    /// Nil if the server's use is unknown.
    var server: ProcessFiles.Usage?
    var own: OwnLoad
}

/// Samples the run every second, and takes the marks between which it is measured.
final class Recorder: Sendable {
    private struct State {
        var series: [Report.SeriesPoint] = []
        /// The mark of the previous sample.
        var last: Mark?
        var isMeasuring = false
        /// Nil unless the busiest moment is being searched for.
        var busiest: BusiestMoment?
    }

    /// A day of samples; later ones are not kept.
    private static let maximumPoints = 86_400
    private let generator: Generator
    private let probe: ServerProbe
    private let processors = ProcessResources.processors().count
    private let start = MonotonicClock.now()
    private let state = Mutex(State())

    init(_ generator: Generator, probe: ServerProbe) {
        self.generator = generator
        self.probe = probe
    }

    /// Reads the server's use first, because that may take a while, and then all other values together.
    func mark() async -> Mark {
        let usage = await probe.usage()
        return Mark(
            time: MonotonicClock.now(), snapshot: generator.snapshot(), server: usage, own: .now())
    }

    /// Begins to search for the moment at which this tool is busiest.
    func beginWatching() {
        state.withLock { $0.busiest = BusiestMoment(processors: processors) }
        watch()
    }

    /// Takes a sample of the tool's own load, if the search is on; called about every 100 ms.
    func watch() {
        guard state.withLock({ $0.busiest != nil }) else { return }
        let load = OwnLoad.now()
        state.withLock { $0.busiest?.add(load) }
    }

    /// Ends the search.
    /// - Returns: the load of the busiest moment; nil if the search was too short.
    func endWatching() -> Report.GeneratorUse? {
        watch()
        return state.withLock { state in
            defer { state.busiest = nil }
            return state.busiest?.use
        }
    }

    var isMeasuring: Bool {
        get { state.withLock { $0.isMeasuring } }
        set { state.withLock { $0.isMeasuring = newValue } }
    }

    var series: [Report.SeriesPoint] { state.withLock { $0.series } }

    /// Adds a point for the time since the previous call to the series.
    /// - Returns: nil for the first call, which has nothing to compare with.
    @discardableResult
    func sample() async -> Report.SeriesPoint? {
        let mark = await mark()
        let (last, isMeasuring) = state.withLock { state in
            defer { state.last = mark }
            return (state.last, state.isMeasuring)
        }
        guard let last else { return nil }
        let interval = Interval(from: last, to: mark)
        let point = Report.SeriesPoint(
            seconds: Double(mark.time.nanoseconds(since: start)) / 1e9,
            time: Date().timeIntervalSince1970, viewers: mark.snapshot.viewers,
            packetsPerSecond: interval.perSecond(interval.tally.packets),
            megabitsPerSecond: interval.perSecond(interval.tally.bytes) * 8 / 1e6,
            lossPercent: interval.tally.loss * 100,
            latencyP50: interval.tally.latency.quantile(0.5).map { Double($0) / 1e6 },
            latencyP99: interval.tally.latency.quantile(0.99).map { Double($0) / 1e6 },
            serverCores: interval.serverCores, serverResidentBytes: mark.server?.residentBytes,
            generatorBusy: mark.own.use(since: last.own, processors: processors).threads.map(\.busy).max()
                ?? 0,
            isMeasured: isMeasuring)
        state.withLock { state in
            if state.series.count < Self.maximumPoints { state.series.append(point) }
        }
        return point
    }
}

/// What happened between two marks.
struct Interval: Sendable {
    let from: Mark
    let to: Mark
    /// Length by the threads' snapshots; at least 1 ms, because it is divided by.
    let seconds: Double
    let tally: Tally
    /// What was counted of the viewers that played before a storm.
    let earlier: Tally

    init(from: Mark, to: Mark) {
        self.from = from
        self.to = to
        // Snapshots are older than the marks; their own times match their counters.
        seconds = max(Double(to.snapshot.time.nanoseconds(since: from.snapshot.time)) / 1e9, 0.001)
        tally = to.snapshot.tally.since(from.snapshot.tally)
        earlier = to.snapshot.earlier.since(from.snapshot.earlier)
    }

    func perSecond(_ count: UInt64) -> Double { Double(count) / seconds }

    /// Elapsed seconds between the marks, to which the CPU times belong.
    private var wallSeconds: Double { max(Double(to.time.nanoseconds(since: from.time)) / 1e9, 0.001) }

    /// CPU seconds of the server; nil if its use is unknown.
    var serverSeconds: Double? {
        guard let before = from.server, let after = to.server else { return nil }
        return after.processorSeconds - before.processorSeconds
    }

    var serverCores: Double? { serverSeconds.map { $0 / wallSeconds } }

    /// The server's CPU time for each packet that reached a viewer, in microseconds; nil without packets.
    var microsecondsPerPacket: Double? {
        guard let serverSeconds, tally.packets > 0 else { return nil }
        // Rates are divided, not totals: CPU and packets were measured over times that differ by some milliseconds.
        return serverSeconds / wallSeconds / perSecond(tally.packets) * 1e6
    }

    func generatorUse(isPinned: Bool) -> Report.GeneratorUse {
        var use = to.own.use(
            since: from.own, processors: ProcessResources.processors().count, isPinned: isPinned)
        use.overflowed = Int(clamping: tally.droppedByKernel)
        use.unsent = Int(clamping: tally.unsent)
        return use
    }

    /// What viewers received, by one of the two tallies of this interval.
    func media(_ tally: Tally) -> Report.Media {
        Report.Media(
            seconds: seconds, packets: Int(clamping: tally.packets),
            packetsPerSecond: perSecond(tally.packets),
            megabitsPerSecond: perSecond(tally.bytes) * 8 / 1e6, lost: Int(clamping: tally.lost),
            lossPercent: tally.loss * 100, reordered: Int(clamping: tally.reordered),
            duplicates: Int(clamping: tally.duplicates), repaired: Int(clamping: tally.repaired),
            stalled: to.snapshot.stalled, latency: Quantiles(milliseconds: tally.latency),
            jitter: Quantiles(milliseconds: tally.jitter))
    }
}
