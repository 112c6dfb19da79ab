import Base
import CLinux
import Dispatch
import Foundation
import Synchronization

/// Keeps what a stream sent last, and makes clips of it, one at a time.
///
/// To keep costs memory alone. A clip is made on a thread of its own, so that meanwhile nothing that comes is missed.
final class ClipJob: TranscoderJob {
    private static let interval = DispatchTimeInterval.seconds(1)
    /// Packets that may wait for the queue; more are dropped.
    private static let backlog = 20_000

    private let queue = DispatchQueue(label: "clips", qos: .utility)
    private let keeper: ClipKeeper
    private let timer: any DispatchSourceTimer
    private let waiting = ClipBacklog()

    init(_ environment: JobEnvironment) {
        let keeper = ClipKeeper(environment)
        self.keeper = keeper
        timer = DispatchSource.makeTimerSource(queue: queue)
        timer.schedule(deadline: .now() + Self.interval, repeating: Self.interval)
        timer.setEventHandler { keeper.advance() }
        timer.resume()
    }

    func command(_ body: [UInt8]) {
        guard let command = try? ClipCommand(body) else { return }
        queue.async { [keeper] in keeper.cut(command) }
    }

    func open(_ input: InputID, from source: SourceKey, _ codec: InputCodec) {
        queue.async { [keeper] in keeper.open(input, from: source) }
    }

    func take(_ packet: InputPacket, of input: InputID) {
        guard waiting.enter(limit: Self.backlog) else { return }
        queue.async { [keeper, waiting] in
            waiting.leave()
            keeper.take(packet, of: input)
        }
    }

    func close(_ input: InputID) {
        queue.async { [keeper] in keeper.close(input) }
    }

    func end() {
        timer.cancel()
        keeper.end()
    }
}

/// Counts what waits for a queue.
private final class ClipBacklog: Sendable {
    private let count = Atomic(0)

    /// - Returns: false if there is no room.
    func enter(limit: Int) -> Bool {
        guard count.add(1, ordering: .relaxed).newValue <= limit else {
            leave()
            return false
        }
        return true
    }

    func leave() { count.subtract(1, ordering: .relaxed) }
}

/// The ring, where its bitstreams come from, and whether a clip is being made.
private final class ClipKeeper: Sendable {
    private struct State {
        var ring = ClipRing()
        /// Also of inputs that are closed: what came of them may still be decoded.
        var sources: [InputID: SourceKey] = [:]
        var isCutting = false
        var hasEnded = false
    }

    /// Inputs whose source is remembered: more than change within two minutes.
    private static let sourceLimit = 1_000

    private let state = Mutex(State())
    private let environment: JobEnvironment

    init(_ environment: JobEnvironment) {
        self.environment = environment
    }

    private static var now: MonotonicTime { MonotonicTime(nanoseconds: clinux_monotonic_nanoseconds()) }

    func open(_ input: InputID, from source: SourceKey) {
        state.withLock { state in
            if state.sources.count >= Self.sourceLimit,
                let oldest = state.sources.keys.min(by: { $0.number < $1.number })
            {
                state.sources[oldest] = nil
            }
            state.sources[input] = source
        }
    }

    func take(_ packet: InputPacket, of input: InputID) {
        state.withLock { state in
            guard !state.hasEnded, state.sources[input] != nil else { return }
            state.ring.append(packet, of: input)
        }
    }

    func close(_ input: InputID) { state.withLock { $0.ring.close(input) } }

    func advance() {
        let now = Self.now
        let wish = state.withLock { state in
            state.ring.advance(to: now)
            return state.ring.takeKeyFrameWish(at: now)
        }
        if let wish { environment.outlet.send(.keyFrameWanted(wish)) }
    }

    /// Lets go of all; what is being made is not finished.
    func end() {
        state.withLock { state in
            state.hasEnded = true
            state.ring = ClipRing()
        }
    }

    func cut(_ command: ClipCommand) {
        let now = Self.now
        let (slice, sources) = state.withLock { state -> (ClipRing.Slice?, [InputID: SourceKey]) in
            guard !state.isCutting, !state.hasEnded else { return (nil, [:]) }
            let slice = state.ring.slice(of: .milliseconds(Int64(command.milliseconds)), at: now)
            state.isCutting = slice != nil
            return (slice, state.sources)
        }
        guard let slice else { return report(command, .refused) }
        report(command, .accepted(milliseconds: UInt32(clamping: slice.milliseconds)))
        let thread = Thread { [self] in
            make(command, of: slice, sources)
            state.withLock { $0.isCutting = false }
        }
        thread.name = "clip"
        thread.start()
    }

    private func make(_ command: ClipCommand, of slice: ClipRing.Slice, _ sources: [InputID: SourceKey]) {
        let codecs = Packager.Codecs.registered(in: environment.register) { sources[$0] }
        let cutter = ClipCutter(slice, codecs: codecs)
        while !cutter.isOver {
            for content in cutter.advance() { report(command, content) }
            if state.withLock({ $0.hasEnded }) { return }
        }
        report(command, cutter.length.map { .finished(milliseconds: UInt32(clamping: $0)) } ?? .failed)
    }

    private func report(_ command: ClipCommand, _ content: ClipReport.Content) {
        environment.report(ClipReport(number: command.number, content).bytes)
    }
}
