import Base
import ClientPeer
import Forwarding
import Peer
import Synchronization
import Testing
import Wire

/// What operators are told of a session, compared with what its client knows.
@Suite(.simulated) struct Measurements {
    /// What workers answered, in order.
    private final class Answers<Answer: Sendable>: Sendable {
        private let kept = Mutex<[Answer?]>([])

        var all: [Answer?] { kept.withLock { $0 } }

        func add(_ answer: Answer?) { kept.withLock { $0.append(answer) } }
    }

    /// Asks a worker, which answers once, whatever the question.
    private func ask<Answer: Sendable>(
        _ simulation: Simulation, worker: Int = 0, _ command: (Inquiry<Answer>) -> WorkerCommand
    ) throws -> Answer? {
        let answers = Answers<Answer>()
        simulation.perform(command(Inquiry { answers.add($0) }), worker: worker)
        try #require(answers.all.count == 1)
        return answers.all[0]
    }

    @Test func `measurements give the time of each phase of joining`() throws {
        let simulation = try Simulation(seed: 61, conditions: .init(delay: .milliseconds(10)))
        let start = simulation.now
        let (publisher, id) = try simulation.add(.publisher)
        let before = try #require(try ask(simulation) { .measure(id, $0) })
        #expect(before.state == .connecting && before.phases.checked == nil && before.pairs.isEmpty)
        #expect(simulation.run(for: .seconds(5)) { publisher.isConnected })
        simulation.run(for: .seconds(1))
        let now = try #require(try ask(simulation) { .measure(id, $0) })
        let checked = try #require(now.phases.checked)
        let connected = try #require(now.phases.connected)
        let media = try #require(now.phases.firstMedia)
        #expect(checked >= start + .milliseconds(10))
        #expect(connected >= checked + .milliseconds(30) && media >= connected)
        #expect(now.state == .connected)
        #expect(now.pairs.count == 1)
        #expect(now.pairs.first?.isSelected == true && now.pairs.first?.remote == publisher.outerAddress)
        #expect(now.sources.map(\.kind) == [.audio, .video] || now.sources.map(\.kind) == [.video, .audio])
    }

    @Test(arguments: [0, 1]) func `measurements give the loss of each hop`(viewersWorker: Int) throws {
        let simulation = try Simulation(
            seed: 62, conditions: .init(delay: .milliseconds(5)), workers: 2)
        let (publisher, id) = try simulation.add(.publisher)
        let (viewer, viewerID) = try simulation.add(.viewer, worker: viewersWorker)
        #expect(simulation.run(for: .seconds(5)) { viewer.decoder.framesDecoded > 0 })
        simulation.conditions.loss = 0.05
        simulation.run(for: .seconds(6))
        let mine = try #require(try ask(simulation) { .measure(id, $0) })
        for source in mine.sources {
            for layer in source.layers {
                #expect(layer.lost > 0 && layer.missing <= layer.lost && layer.lost < layer.expected)
                #expect(layer.received <= UInt64(layer.expected))
            }
        }
        let sent = UInt64(publisher.videoTracks.map { Int($0.packetsSent) }.reduce(0, +))
        let video = try #require(mine.sources.first { $0.kind == .video }?.layers.first)
        #expect(video.received <= sent && video.repaired > 0)
        let theirs = try #require(try ask(simulation, worker: viewersWorker) { .measure(viewerID, $0) })
        let sending = try #require(theirs.sendings.first { $0.kind == .video })
        #expect((sending.reception?.cumulativeLost ?? 0) > 0 || sending.resent > 0)
        #expect(theirs.quality.roundTrip != nil)
        // What it carries leads to the publisher, on whatever worker.
        let key = try #require(sending.track)
        #expect(key.worker == 0)
        let source = try #require(try ask(simulation, worker: key.worker) { .measureTrack(key.track, $0) })
        #expect(source.session == id && source.kind == .video && source.track == key)
    }

    @Test func `a session leaves its measurements behind when it ends`() throws {
        let simulation = try Simulation(seed: 63, conditions: .init(delay: .milliseconds(5)))
        let (publisher, id) = try simulation.add(.publisher)
        #expect(simulation.run(for: .seconds(5)) { publisher.isConnected })
        simulation.run(for: .seconds(1))
        let gauge = try #require(simulation.workers[0].sessions[id]?.gauge)
        #expect(gauge.measurements == nil)
        simulation.perform(.close(id))
        let last = try #require(gauge.measurements)
        #expect(last.state == .closed(.ended) && last.totals.received.packets > 0)
        #expect(
            try ask(simulation) { (inquiry: Inquiry<SessionMeasurements>) in .measure(id, inquiry) } == nil)
    }

    @Test func `a track that nobody publishes has no measurements`() throws {
        let simulation = try Simulation(seed: 64)
        let id = TrackID(number: 99)
        let answer: TrackMeasurements? = try ask(simulation) { .measureTrack(id, $0) }
        #expect(answer == nil)
    }
}
