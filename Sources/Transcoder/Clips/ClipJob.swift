import Base
import CLinux
import Dispatch
import Foundation
import Synchronization

/// Keeps the last minutes of a stream's media, and creates clips from them, one at a time.
///
/// Keeping costs memory only. A clip is created on its own thread, so that arriving media is not missed meanwhile.
final class ClipJob: TranscoderJob {
    private static let interval = DispatchTimeInterval.seconds(1)
    /// Packets that may wait for the queue; further ones are dropped.
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

/// Counts the packets that wait for a queue; called by the reading thread and by the queue.
private final class ClipBacklog: Sendable {
    private let count = Atomic(0)

    /// - Returns: false if the queue is full.
    func enter(limit: Int) -> Bool {
        guard count.add(1, ordering: .relaxed).newValue <= limit else {
            leave()
            return false
        }
        return true
    }

    func leave() { count.subtract(1, ordering: .relaxed) }
}

/// The ring, the sources of its inputs, and whether a clip is being created.
///
/// Its lock is shared by the queue and the thread that creates a clip; it is not held while decoding.
private final class ClipKeeper: Sendable {
    private struct State {
        var ring = ClipRing()
        /// Sources of all inputs, closed ones included: their packets may still have to be decoded.
        var sources: [InputID: SourceKey] = [:]
        var isCutting = false
        var hasEnded = false
    }

    /// Inputs whose sources are remembered: more than change within the two minutes that a clip may cover.
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

    /// Drops old packets, and requests a key frame if the latest one is too old.
    func advance() {
        let now = Self.now
        let wish = state.withLock { state in
            state.ring.advance(to: now)
            return state.ring.takeKeyFrameWish(at: now)
        }
        if let wish { environment.outlet.send(.keyFrameWanted(wish)) }
    }

    /// Drops everything; a clip in progress is abandoned.
    func end() {
        state.withLock { state in
            state.hasEnded = true
            state.ring = ClipRing()
        }
    }

    /// Starts to create a clip, unless one is in progress or there is too little media.
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

    /// Creates the clip; the body of a thread.
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
