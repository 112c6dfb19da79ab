import Base
import Foundation
import Net
import Synchronization

/// Everything that is known at one moment; two of them make a measurement.
struct Mark: Sendable {
    var time: MonotonicTime
    var snapshot: Snapshot
    var server: ProcessFiles.Usage?
    var own: OwnLoad
}

/// Watches a run: once a second it writes down how things stand, and it takes the marks of measurements.
final class Recorder: Sendable {
    private struct State {
        var series: [Report.SeriesPoint] = []
        var last: Mark?
        var isMeasuring = false
        /// Nil unless somebody wants to know.
        var busiest: BusiestMoment?
    }

    /// Beyond this, one point stands for several seconds.
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

    func mark() async -> Mark {
        let usage = await probe.usage()
        return Mark(
            time: MonotonicClock.now(), snapshot: generator.snapshot(), server: usage, own: .now())
    }

    /// Looks for the moment in which this tool is busiest, from now on.
    func beginWatching() {
        state.withLock { $0.busiest = BusiestMoment(processors: processors) }
        watch()
    }

    /// Called many times a second.
    func watch() {
        guard state.withLock({ $0.busiest != nil }) else { return }
        let load = OwnLoad.now()
        state.withLock { $0.busiest?.add(load) }
    }

    /// - Returns: nil if the time was too short.
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

    /// Writes the last second down.
    /// - Returns: nil the first time, when there is nothing to compare with.
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
    let seconds: Double
    let tally: Tally
    let earlier: Tally

    init(from: Mark, to: Mark) {
        self.from = from
        self.to = to
        // The snapshots say themselves when they were made.
        seconds = max(Double(to.snapshot.time.nanoseconds(since: from.snapshot.time)) / 1e9, 0.001)
        tally = to.snapshot.tally.since(from.snapshot.tally)
        earlier = to.snapshot.earlier.since(from.snapshot.earlier)
    }

    func perSecond(_ count: UInt64) -> Double { Double(count) / seconds }

    /// By the wall clock, which server and process times go by.
    private var wallSeconds: Double { max(Double(to.time.nanoseconds(since: from.time)) / 1e9, 0.001) }

    var serverSeconds: Double? {
        guard let before = from.server, let after = to.server else { return nil }
        return after.processorSeconds - before.processorSeconds
    }

    var serverCores: Double? { serverSeconds.map { $0 / wallSeconds } }

    /// The server's CPU time for each packet that reached a viewer, in microseconds.
    var microsecondsPerPacket: Double? {
        guard let serverSeconds, tally.packets > 0 else { return nil }
        // The two were measured over times that differ by some milliseconds.
        return serverSeconds / wallSeconds / perSecond(tally.packets) * 1e6
    }

    func generatorUse(isPinned: Bool) -> Report.GeneratorUse {
        var use = to.own.use(
            since: from.own, processors: ProcessResources.processors().count, isPinned: isPinned)
        use.overflowed = Int(clamping: tally.droppedByKernel)
        use.unsent = Int(clamping: tally.unsent)
        return use
    }

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
