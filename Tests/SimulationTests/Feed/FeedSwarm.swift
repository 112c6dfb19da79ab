import Base
import ClientPeer
import Forwarding
import StoryFeed
import TestSupport

/// Many viewers who swipe: on and back, to and fro, by jumps, and half-way only; and what each of them gets.
final class FeedSwarm {
    private final class Swiper {
        let viewer: FeedSimulation.Viewer
        var focus: Int
        var direction = 1
        var drag: (target: Int, isCalledOff: Bool)?
        var nextMove: MonotonicTime
        var swiped: MonotonicTime
        var hasPlayed = false
        var watch = AttachmentWatch(tolerance: FeedSwarm.disorder)
        var records: [String: SlotRecord] = [:]
        var mostAtOnce = 0

        init(_ viewer: FeedSimulation.Viewer, focus: Int, at now: MonotonicTime) {
            (self.viewer, self.focus, nextMove, swiped) = (viewer, focus, now, now)
        }
    }

    /// How far jitter, repair and the steps of the simulation may put packets out of order.
    static let disorder = Duration.milliseconds(40)
    /// A picture that was lost with its key frame comes again within this.
    private static let patience = Duration.seconds(4)

    let simulation: FeedSimulation
    private(set) var streams: [StreamID] = []
    private var swipers: [Swiper] = []
    private var random: SeededGenerator
    private(set) var swipes = 0
    private(set) var faults: [String] = []
    let count: Int

    struct NotConnected: Error {}

    /// - Parameter isApart: whether all streams come to the first worker, and all viewers to the last one.
    init(
        seed: UInt64, viewers: Int, streams: Int, workers: Int, isApart: Bool = false,
        change: (FeedSimulation) -> Void = { _ in }
    ) throws {
        let seed = ChosenSeed.or(seed)
        simulation = try FeedSimulation(seed: seed, workers: workers)
        random = SeededGenerator(seed: seed ^ 0x5EED)
        count = viewers
        for number in 0..<streams {
            self.streams.append(
                try simulation.publish("s\(number)", on: isApart ? 0 : nil) {
                    $0.framesPerSecond = 15
                    // Neighbours are thinned where there are temporal layers.
                    $0.temporalLayers = 1 + number % 3
                })
        }
        simulation.run(for: .seconds(2))
        for number in 0..<viewers {
            let focus = Int.random(in: 0..<streams, using: &random)
            let viewer = try simulation.watch(
                on: self.streams[focus], preload: number.isMultiple(of: 3) ? .onSwipe : .eager,
                worker: isApart ? workers - 1 : number % workers)
            let swiper = Swiper(viewer, focus: focus, at: simulation.now)
            viewer.client.onPacket = { [unowned swiper] in Self.note($0, swiper) }
            swipers.append(swiper)
        }
        // Handshakes wait by the real clock: what is lost of them would not come again.
        let isReady = simulation.run(for: .seconds(4)) {
            swipers.allSatisfy { $0.viewer.client.hasControl && simulation.isPlaying($0.viewer) }
        }
        guard isReady else { throw NotConnected() }
        change(simulation)
        for swiper in swipers { swiper.nextMove = simulation.now + pause(0...800) }
    }

    private static func note(_ arrival: StageClient.Arrival, _ swiper: Swiper) {
        swiper.records[arrival.mid, default: SlotRecord(kind: arrival.kind)].add(arrival)
        // A repaired packet belongs to the past.
        guard !arrival.isRepaired else { return }
        swiper.mostAtOnce = max(swiper.mostAtOnce, swiper.watch.receive(arrival.source, at: arrival.time))
    }

    private func pause(_ milliseconds: ClosedRange<Int>) -> Duration {
        .milliseconds(Int.random(in: milliseconds, using: &random))
    }

    // MARK: Time

    /// Lets everybody swipe.
    func run(for time: Duration, dwell: ClosedRange<Int> = 100...1_500) {
        let end = simulation.now + time
        while simulation.now < end {
            simulation.run(for: .milliseconds(15))
            for swiper in swipers {
                look(at: swiper)
                if swiper.nextMove <= simulation.now { move(swiper, dwell) }
            }
        }
    }

    /// Nobody swipes any more: everybody has to see and hear what is in focus.
    /// - Returns: those who do not, in the end.
    func settle(within limit: Duration = FeedSwarm.patience) -> [String] {
        simulation.run(for: limit) { swipers.allSatisfy { simulation.isPlaying($0.viewer) } }
        return swipers.filter { !simulation.isPlaying($0.viewer) }.map { swiper in
            "\(swiper.viewer.client.name), slots \(simulation.slots(swiper.viewer))"
        }
    }

    func end(_ stream: StreamID) {
        simulation.end(stream)
        streams.removeAll { $0 == stream }
        for swiper in swipers { swiper.focus = 0 }
    }

    private func look(at swiper: Swiper) {
        if !swiper.hasPlayed, simulation.isPlaying(swiper.viewer) { swiper.hasPlayed = true }
        guard !swiper.hasPlayed, swiper.swiped + Self.patience < simulation.now else { return }
        swiper.hasPlayed = true
        faults.append("\(swiper.viewer.client.name) has neither picture nor sound for \(Self.patience)")
    }

    private func move(_ swiper: Swiper, _ dwell: ClosedRange<Int>) {
        guard let drag = swiper.drag else { return begin(swiper, dwell) }
        swiper.drag = nil
        swiper.nextMove = simulation.now + pause(dwell)
        guard !drag.isCalledOff else {
            return simulation.say(#"{"type":"release"}"#, swiper.viewer)
        }
        turn(swiper, to: drag.target)
    }

    private func begin(_ swiper: Swiper, _ dwell: ClosedRange<Int>) {
        let count = streams.count
        switch Int.random(in: 0..<10, using: &random) {
        case 0:
            swiper.nextMove = simulation.now + pause(dwell)
            turn(swiper, to: Int.random(in: 0..<count, using: &random))
        case let roll:
            if roll <= 3 { swiper.direction = -swiper.direction }
            let target = (swiper.focus % count + swiper.direction + count) % count
            swiper.drag = (target, roll == 9)
            swiper.nextMove = simulation.now + pause(30...250)
            let way = swiper.direction > 0 ? "forward" : "backward"
            simulation.say(
                #"{"type":"peek","stream":"\#(streams[target])","direction":"\#(way)"}"#, swiper.viewer)
        }
    }

    private func turn(_ swiper: Swiper, to target: Int) {
        swipes += 1
        swiper.focus = target % streams.count
        (swiper.swiped, swiper.hasPlayed) = (simulation.now, false)
        simulation.focus(streams[swiper.focus], swiper.viewer)
    }

    // MARK: What it has come to

    /// Everything that should not have been.
    var allFaults: [String] {
        var all = simulation.faults + faults
        for swiper in swipers {
            let name = swiper.viewer.client.name
            if swiper.mostAtOnce > 2 { all.append("\(name) got \(swiper.mostAtOnce) streams at once") }
            for slot in swiper.viewer.client.slots where !slot.decoder.complaints.isEmpty {
                all.append("\(name) \(slot.mid): \(slot.decoder.complaints)")
            }
            for (mid, record) in swiper.records { all += record.faults.map { "\(name) \(mid): \($0)" } }
        }
        return all
    }

    var switches: Int { swipers.flatMap(\.records.values).map(\.switches).reduce(0, +) }
    var missing: Int { swipers.flatMap(\.records.values).map(\.missing).reduce(0, +) }
    var keyFrameRequests: [Int] { streams.map { simulation.keyFrameRequests(of: $0) } }
    var viewersLeft: Int { swipers.filter { $0.viewer.client.connection?.isClosed == false }.count }
}
