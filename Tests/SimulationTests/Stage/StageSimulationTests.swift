import Base
import ClientPeer
import Forwarding
import Peer
import Stage
import TestSupport
import TestTraits
import Testing
import Wire

@Suite(.simulated, .sctpTurn) struct OnStage {
    private let bad = SimulatedNetwork.Conditions(
        loss: 0.02, duplication: 0.01, delay: .milliseconds(20), jitter: .milliseconds(10))

    /// What has to hold all the time.
    private func check(_ simulation: StageSimulation, _ when: String) {
        for id in simulation.order {
            guard let client = simulation.clients[id] else { continue }
            #expect(!client.sawItself, "\(client.name) got itself \(when)")
            for slot in client.slots {
                #expect(slot.decoder.complaints.isEmpty, "\(client.name) \(slot.mid) \(when)")
            }
        }
    }

    private func settles(_ simulation: StageSimulation, within limit: Duration) -> Bool {
        simulation.run(for: limit) {
            simulation.order.allSatisfy { simulation.wrongSlots(of: $0).isEmpty }
        }
    }

    @Test(arguments: [1, 2, 3] as [UInt64])
    func `a weak uplink is reported within twenty seconds, and no other`(seed: UInt64) throws {
        let simulation = try StageSimulation(seed: seed, conditions: bad)
        for isHost in [true, false] { _ = try simulation.add(isHost: isHost) }
        #expect(simulation.run(for: .seconds(10)) { simulation.clients.values.allSatisfy(\.isConnected) })
        simulation.run(for: .seconds(20))
        #expect(simulation.weakUplinks.isEmpty, "a fiftieth is not much")
        simulation.conditions.loss = 0.1
        simulation.run(for: .seconds(20))
        #expect(Set(simulation.weakUplinks) == Set(simulation.order))
        simulation.conditions.loss = 0
        simulation.run(for: .seconds(11))
        let told = simulation.weakUplinks.count
        #expect(told <= 12, "once in five seconds for each")
        simulation.run(for: .seconds(20))
        #expect(simulation.weakUplinks.count == told)
    }

    @Test func `50 speakers see nine others each and hear the loudest three, over a bad network`() throws {
        let simulation = try StageSimulation(seed: 50, conditions: bad)
        for _ in 0..<50 {
            _ = try simulation.add()
            simulation.run(for: .milliseconds(20))
        }
        #expect(simulation.run(for: .seconds(10)) { simulation.clients.values.allSatisfy(\.isConnected) })
        simulation.run(for: .seconds(1))
        #expect(settles(simulation, within: .seconds(6)))
        for id in simulation.order {
            #expect(simulation.shown(to: id, .video).count == 9)
            #expect(simulation.shown(to: id, .audio).count == 3)
        }
        check(simulation, "in silence")

        // Somebody from the last row speaks: everybody sees and hears them.
        let speaker = simulation.order[44]
        simulation.clients[speaker]?.audioLevel = 25
        simulation.run(for: .milliseconds(1_200))
        for id in simulation.order where id != speaker {
            #expect(simulation.shown(to: id, .video).contains(speaker))
            #expect(simulation.shown(to: id, .audio).contains(speaker))
        }
        #expect(settles(simulation, within: .seconds(4)))
        check(simulation, "while one speaks")

        // They leave, another comes; nobody offers anything anew.
        simulation.leave(speaker)
        let newcomer = try simulation.add()
        #expect(
            simulation.run(for: .seconds(3)) {
                simulation.clients[newcomer]?.isConnected == true
                    && simulation.order.allSatisfy { !simulation.shown(to: $0, .video).contains(speaker) }
            })
        simulation.clients[newcomer]?.audioLevel = 20
        simulation.run(for: .milliseconds(1_500))
        for id in simulation.order where id != newcomer {
            #expect(simulation.shown(to: id, .audio).contains(newcomer))
        }
        #expect(settles(simulation, within: .seconds(4)))
        for id in simulation.order { #expect(simulation.shown(to: id, .video).count == 9) }
        check(simulation, "in the end")
    }

    @Test func `a pin brings its picture, and a slot out of sight gets nothing`() throws {
        let simulation = try StageSimulation(seed: 3)
        let ids = try (0..<4).map { _ in try simulation.add(audio: 1, video: 1) }
        #expect(simulation.run(for: .seconds(5)) { simulation.clients.values.allSatisfy(\.isConnected) })
        simulation.run(for: .seconds(1))
        let slot = try #require(simulation.clients[ids[0]]?.slots.first { $0.kind == .video })
        let name = try #require(simulation.clients[ids[3]]?.name)
        simulation.pin(name, in: slot.mid, of: ids[0])
        #expect(simulation.shown(to: ids[0], .video) == [ids[3]])
        #expect(settles(simulation, within: .seconds(3)))
        simulation.say(#"{"type":"visible","mid":"\#(slot.mid)","visible":false}"#, by: ids[0])
        simulation.run(for: .seconds(2))
        let last = try #require(simulation.clients[ids[0]]?.slots.first { $0.mid == slot.mid })
        #expect(last.source == 3)
        #expect(last.heard + .seconds(1) < simulation.now)
        simulation.say(#"{"type":"visible","mid":"\#(slot.mid)","visible":true}"#, by: ids[0])
        #expect(settles(simulation, within: .seconds(3)))
        check(simulation, "with a pin")
    }

    @Test(arguments: [1, 2])
    func `a data track reaches everybody else, late ones too`(workers: Int) throws {
        let simulation = try StageSimulation(seed: 9, conditions: bad, workers: workers)
        let ids = try (0..<3).map { _ in try simulation.add(audio: 1, video: 0) }
        #expect(simulation.run(for: .seconds(20)) { ids.allSatisfy(simulation.hasControl) })
        let stream = try #require(
            try simulation.with(ids[0]) { try $0.open("data:chat", at: simulation.now, into: &$1) } ?? nil)
        let long = DataChannelMessage.binary([UInt8](repeating: 7, count: 100_000))
        try simulation.with(ids[0]) { try $0.send(long, on: stream, at: simulation.now, into: &$1) }
        #expect(
            simulation.run(for: .seconds(60)) {
                ids[1...].allSatisfy { simulation.clients[$0]?.messages("data:chat") == [long] }
            })
        let late = try simulation.add(audio: 1, video: 0)
        #expect(simulation.run(for: .seconds(20)) { simulation.hasControl(late) })
        let word = DataChannelMessage("hello")
        try simulation.with(ids[0]) { try $0.send(word, on: stream, at: simulation.now, into: &$1) }
        #expect(
            simulation.run(for: .seconds(20)) {
                simulation.clients[late]?.messages("data:chat") == [word]
                    && ids[1...].allSatisfy { simulation.clients[$0]?.messages("data:chat") == [long, word] }
            })
        #expect(simulation.clients[ids[0]]?.messages("data:chat") == [])
        simulation.leave(ids[0])
        #expect(
            simulation.run(for: .seconds(20)) {
                ids[1...].allSatisfy { id in
                    simulation.clients[id]?.dataEvents.contains {
                        if case .closed = $0 { true } else { false }
                    }
                        ?? false
                }
            })
    }

    @Test(arguments: [1, 2])
    func `viewers see the host and hear who speaks, or see who speaks too`(workers: Int) throws {
        let simulation = try StageSimulation(seed: 12, workers: workers)
        let host = try simulation.add(audio: 2, video: 2, isHost: true)
        let viewers = [try simulation.addViewer(), try simulation.addViewer()]
        func viewersGet(_ audio: Int?, _ video: Int?) -> Bool {
            simulation.run(for: .seconds(4)) {
                viewers.allSatisfy { viewer in
                    simulation.clients[viewer]?.source(.audio, at: simulation.now) == audio
                        && simulation.clients[viewer]?.source(.video, at: simulation.now) == video
                }
            }
        }
        #expect(viewersGet(0, 0))
        let bob = try simulation.add(audio: 2, video: 2)
        #expect(simulation.run(for: .seconds(5)) { simulation.clients[bob]?.isConnected == true })
        simulation.run(for: .seconds(1))
        #expect(viewersGet(0, 0))
        simulation.clients[bob]?.audioLevel = 20
        #expect(viewersGet(3, 0))
        simulation.setProgramme(.activeSpeaker)
        #expect(viewersGet(3, 3))
        // A viewer who comes later gets the same.
        let late = try simulation.addViewer()
        #expect(
            simulation.run(for: .seconds(5)) {
                simulation.clients[late]?.source(.video, at: simulation.now) == 3
            })
        simulation.clients[bob]?.audioLevel = 127
        simulation.clients[host]?.audioLevel = 20
        #expect(viewersGet(0, 0))
        simulation.clients[host]?.audioLevel = 127
        simulation.clients[bob]?.audioLevel = 20
        #expect(viewersGet(3, 3))
        simulation.leave(bob)
        #expect(viewersGet(0, 0))
        for viewer in viewers {
            #expect(simulation.clients[viewer]?.slots.allSatisfy(\.decoder.complaints.isEmpty) == true)
        }
        #expect(simulation.workers.allSatisfy { $0.sessions.count <= 5 })
        simulation.leave(host)
        #expect(viewersGet(nil, nil))
    }

    @Test(arguments: [1, 2])
    func `viewers of a published stream get its second host once the first is gone`(workers: Int) throws {
        let simulation = try StageSimulation(seed: 13, workers: workers)
        simulation.beginByPublishing()
        let host = try simulation.add(audio: 2, video: 2, isHost: true)
        let viewer = try simulation.addViewer()
        /// They hear whoever speaks.
        func viewersSee(_ speaker: Int) -> Bool {
            simulation.run(for: .seconds(4)) {
                simulation.clients[viewer]?.source(.video, at: simulation.now) == speaker
                    && simulation.clients[viewer]?.source(.audio, at: simulation.now) != nil
            }
        }
        #expect(viewersSee(0))
        // A speaker alone does not take over.
        let speaker = try simulation.add(audio: 2, video: 2)
        let second = try simulation.addSecondHost()
        for id in [speaker, second] {
            #expect(simulation.run(for: .seconds(5)) { simulation.clients[id]?.isConnected == true })
        }
        simulation.run(for: .seconds(1))
        #expect(viewersSee(0))
        simulation.leave(host)
        #expect(viewersSee(3))
        simulation.run(for: .seconds(5))
        #expect(viewersSee(3))
        // The publisher with the latest offer of a host is the source, as always.
        _ = try simulation.add(audio: 2, video: 2, isHost: true)
        #expect(viewersSee(4))
        #expect(simulation.clients[viewer]?.slots.allSatisfy(\.decoder.complaints.isEmpty) == true)
    }

    @Test func `a client that floods its control channel is heard within its limit`() throws {
        let simulation = try StageSimulation(seed: 11, workers: 1)
        let id = try simulation.add(audio: 0, video: 0)
        #expect(simulation.run(for: .seconds(20)) { simulation.hasControl(id) })
        for _ in 0..<100 {
            for _ in 0..<10 {
                try? simulation.with(id) {
                    try $0.send(DataChannelMessage("{}"), on: 0, at: simulation.now, into: &$1)
                }
            }
            simulation.run(for: .milliseconds(50))
        }
        // Five seconds: two of them in hand, and what the last messages took to arrive.
        #expect((100...200).contains(simulation.controlMessages.count))
        #expect(simulation.workers[0].statistics.messagesDropped > 500)
    }
}
