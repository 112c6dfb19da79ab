import Base
import ClientPeer
import Forwarding
import Peer
import TestSupport
import Testing
import Wire

/// A publisher of three sizes and viewers with links of their own, watched closely.
final class AdaptationTrial {
    /// 720p, 480p and 360p.
    static let ladder = SyntheticVideo.Settings.ladder(
        [(2_000_000, 720), (800_000, 480), (400_000, 360)])
    /// How often is looked: finer than the time between two pictures.
    static let tick = Duration.milliseconds(5)

    /// A viewer, and what was seen of them.
    final class Viewer {
        /// From this moment on something else is sent, or nothing.
        struct Change {
            let time: MonotonicTime
            /// In pixels; nil for nothing.
            let height: Int?
            /// When the first picture of it could be decoded; nil where none could.
            var shown: MonotonicTime?
        }

        let client: SimulatedClient
        let session: Session
        let slot: Slot
        let added: MonotonicTime
        private(set) var changes: [Change] = []
        private var keyFrames = 0

        init(_ client: SimulatedClient, _ session: Session, at now: MonotonicTime) throws {
            (self.client, self.session, added) = (client, session, now)
            slot = try #require(session.slots.first { $0.plan.kind == .video })
        }

        var height: Int? { slot.isStopped ? nil : slot.current?.resolution.map { Int($0.height) } }
        /// When the first picture of a height could be decoded that was changed to after `start` and is still sent at
        /// `end`; nil where there is none.
        func shown(_ height: Int, from start: MonotonicTime, to end: MonotonicTime = .distantFuture)
            -> MonotonicTime?
        {
            guard let last = changes.last(where: { $0.time < end }), last.height == height, last.time >= start
            else { return nil }
            return last.shown
        }

        var probeBytes: UInt64 { session.totals.probeBytes }

        func look(at now: MonotonicTime) {
            let complete = client.keyFrames.complete
            for (time, height) in complete[keyFrames...] {
                guard let last = changes.lastIndex(where: { $0.height == height }), changes[last].shown == nil
                else { continue }
                changes[last].shown = time
            }
            keyFrames = complete.count
            if changes.last.map({ $0.height != height }) ?? (height != nil) {
                changes.append(Change(time: now, height: height))
            }
        }
    }

    let simulation: Simulation
    let publisher: SimulatedClient
    private(set) var viewers: [Viewer] = []
    private var random: SeededGenerator

    init(
        seed: UInt64, delay: Duration, ladder: [SyntheticVideo.Settings] = AdaptationTrial.ladder
    ) throws {
        random = SeededGenerator(seed: seed)
        simulation = try Simulation(seed: seed, conditions: .init(delay: delay))
        (publisher, _) = try simulation.add(.publisher, rids: ["h", "m", "l"], layers: ladder)
        let publisher = publisher
        #expect(simulation.run(for: .seconds(5)) { publisher.isConnected })
        // Nothing is in step with the pictures, or with what is done once a second.
        simulation.run(for: .milliseconds(2_000) + pause(below: 1_000))
    }

    /// Some time that the seed decides.
    func pause(below milliseconds: Int64) -> Duration {
        .microseconds(Int64.random(in: 0..<(milliseconds * 1_000), using: &random))
    }

    func number(in range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &random) }

    @discardableResult
    func join(_ link: CappedLink?, delay: Duration? = nil, hasRED: Bool = false) throws -> Viewer {
        let (client, id) = try simulation.add(.viewer, hasRED: hasRED, asksForSound: false)
        simulation.cap(client, link)
        if let delay { simulation.delay(client, by: delay) }
        simulation.followPassages(to: client)
        let viewer = try Viewer(client, try #require(simulation.workers[0].sessions[id]), at: simulation.now)
        viewers.append(viewer)
        return viewer
    }

    /// Adds a viewer behind the link that several have in common.
    @discardableResult
    func joinCommonLink() throws -> Viewer {
        let viewer = try join(nil)
        simulation.withCommonLink { $0.receivers.insert(viewer.client.outerAddress) }
        return viewer
    }

    func watch(for duration: Duration, each: () -> Void = {}) {
        watch(until: simulation.now + duration, each: each)
    }

    func watch(until end: MonotonicTime, each: () -> Void = {}) {
        while simulation.now < end {
            each()
            simulation.run(for: min(Self.tick, end - simulation.now))
            for viewer in viewers { viewer.look(at: simulation.now) }
        }
    }

    /// Seconds since a moment of the packets of sound that never came to a viewer, by when the publisher sent them, of
    /// those between what came first and last.
    func silences(of viewer: Viewer, from start: MonotonicTime) -> [Double] {
        let client = viewer.client
        guard let shift = client.soundShift, let connected = publisher.connectedAt else { return [.infinity] }
        let heard = publisher.spokenTimes.map { client.heardTimes.contains($0 &+ shift) }
        guard let first = heard.firstIndex(of: true), let last = heard.lastIndex(of: true) else {
            return [.infinity]
        }
        let began = Double(connected.nanoseconds(since: start)) / 1e9
        return (first...last).filter { !heard[$0] }.map { began + Double($0) * 0.02 }.filter { $0 >= 0 }
    }

    /// When a viewer's queue was empty for the first time after it had been long.
    /// - Parameter bitrate: what the link takes then.
    func emptied(before viewer: Viewer, after start: MonotonicTime, bitrate: Double) -> MonotonicTime? {
        var isLong = false
        for passage in simulation.passages(to: viewer.client) where passage.time >= start {
            // One that is dropped found it full.
            let wait = passage.wait.map { Double($0.wholeNanoseconds) / 1e6 } ?? .infinity
            isLong = isLong || wait > 100
            // A packet waits only for its own time on the link, and for packets that left with it.
            if isLong, wait < Double(passage.bytes) * 8_000 / bitrate + 5 { return passage.time }
        }
        return nil
    }

    /// Milliseconds that packets waited at the link before a viewer.
    func waits(of viewer: Viewer, from start: MonotonicTime, to end: MonotonicTime) -> [Double] {
        simulation.passages(to: viewer.client).filter { $0.time >= start && $0.time < end }
            .compactMap { $0.wait.map { Double($0.wholeNanoseconds) / 1e6 } }
    }
}

/// The value that so many percent do not exceed, by nearest rank.
func percentile(_ percent: Int, of values: [Double]) -> Double {
    let sorted = values.sorted()
    guard !sorted.isEmpty else { return .infinity }
    return sorted[max((sorted.count * percent + 99) / 100 - 1, 0)]
}
