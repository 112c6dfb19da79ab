import Base
import ClientPeer
import Peer
import Testing

@Suite(.simulated) struct ICEBetweenClientAndServer {
    private static let bad = SimulatedNetwork.Conditions(
        loss: 0.2, duplication: 0.05, delay: .milliseconds(10), jitter: .milliseconds(140))
    private static let good = SimulatedNetwork.Conditions(delay: .milliseconds(10), jitter: .milliseconds(20))

    private func connected(
        _ seed: UInt64, _ nomination: ICEControllingAgent.Nomination,
        _ network: SimulatedNetwork.Conditions = good
    ) -> ICESimulation {
        var simulation = ICESimulation(seed: seed, nomination: nomination, network: network)
        #expect(simulation.run(.seconds(20)) { $0.isSettled } != nil)
        // So that everything that was nominated at the start has been answered.
        _ = simulation.run(.seconds(5))
        #expect(simulation.isSettled)
        return simulation
    }

    @Test(arguments: ICEControllingAgent.Nomination.allCases)
    func `connects at once on a good network`(nomination: ICEControllingAgent.Nomination) throws {
        for seed in UInt64(0)..<40 {
            var simulation = ICESimulation(seed: seed, nomination: nomination, network: Self.good)
            let time = try #require(simulation.run(.seconds(2)) { $0.client.selected != nil && $0.isSettled })
            #expect(time <= .milliseconds(310))
        }
    }

    @Test(arguments: ICEControllingAgent.Nomination.allCases)
    func `stays connected on a bad network`(nomination: ICEControllingAgent.Nomination) {
        for seed in UInt64(0)..<10 {
            var simulation = connected(seed, nomination, Self.bad)
            _ = simulation.run(.seconds(60))
            #expect(simulation.isSettled)
            #expect(!simulation.serverEffects.contains(.consentLost))
            #expect(!simulation.clientEffects.contains(.consentLost))
        }
    }

    @Test(arguments: ICEControllingAgent.Nomination.allCases)
    func `settles on one path and stays there`(nomination: ICEControllingAgent.Nomination) {
        for seed in UInt64(0)..<10 {
            var simulation = connected(seed, nomination)
            let before = simulation.serverEffects.count { if case .nominate = $0 { true } else { false } }
            _ = simulation.run(.seconds(60))
            let after = simulation.serverEffects.count { if case .nominate = $0 { true } else { false } }
            #expect(after == before)
            #expect(simulation.isSettled)
        }
    }

    @Test(arguments: ICEControllingAgent.Nomination.allCases)
    func `follows an address that a NAT changed, with the next check`(
        nomination: ICEControllingAgent.Nomination
    )
        throws
    {
        for seed in UInt64(0)..<10 {
            var simulation = connected(seed, nomination)
            simulation.rebind(0)
            #expect(!simulation.isSettled)
            // The next check comes after 3 s at most, a packet 50 ms later, and a proof takes a round trip.
            #expect(try #require(simulation.run(.seconds(10)) { $0.isSettled }) <= .milliseconds(3_170))
        }
    }

    @Test(arguments: ICEControllingAgent.Nomination.allCases)
    func `follows a client whose network went down`(nomination: ICEControllingAgent.Nomination) throws {
        for seed in UInt64(0)..<10 {
            var simulation = connected(seed, nomination)
            simulation.cut(0)
            #expect(try #require(simulation.run(.seconds(10)) { $0.isSettled }) <= .milliseconds(400))
        }
    }

    @Test(arguments: ICEControllingAgent.Nomination.allCases)
    func `follows a client that moves by its own choice, either way`(
        nomination: ICEControllingAgent.Nomination
    )
        throws
    {
        for seed in UInt64(0)..<10 {
            var simulation = connected(seed, nomination)
            for socket in [1, 0, 1] {
                let hasMoved = simulation.move(to: socket)
                #expect(hasMoved)
                let local = ICESimulation.sockets[socket]
                let time = try #require(
                    simulation.run(.seconds(10)) { $0.client.selected?.local == local && $0.isSettled })
                #expect(time <= .milliseconds(400))
                _ = simulation.run(.seconds(4))
                #expect(simulation.isSettled)
            }
        }
    }

    @Test(arguments: ICEControllingAgent.Nomination.allCases)
    func `restarts without losing its path`(nomination: ICEControllingAgent.Nomination) throws {
        for seed in UInt64(0)..<10 {
            var simulation = connected(seed, nomination)
            let path = try #require(simulation.client.selected)
            simulation.restart()
            let retired = simulation.run(.seconds(5)) { $0.server.localUfrags.count == 1 }
            #expect(try #require(retired) <= .milliseconds(100))
            #expect(simulation.isSettled)
            _ = simulation.run(.seconds(40))
            #expect(simulation.isSettled)
            #expect(simulation.client.selected == path)
            #expect(!simulation.clientEffects.contains(.consentLost))
        }
    }

    @Test func `notices within 30 s that the client is gone`() throws {
        var simulation = connected(1, .regular)
        simulation.clientIsGone = true
        let time = try #require(simulation.run(.seconds(60)) { $0.serverEffects.contains(.consentLost) })
        #expect((Duration.seconds(29)...Duration.milliseconds(30_030)).contains(time))
    }

    @Test func `notices within 30 s that the server is gone`() throws {
        var simulation = connected(1, .regular)
        simulation.serverIsGone = true
        let time = try #require(simulation.run(.seconds(60)) { $0.clientEffects.contains(.consentLost) })
        #expect((Duration.seconds(26)...Duration.seconds(30)).contains(time))
    }

    @Test func `keeps a silent viewer by its checks alone`() {
        var simulation = connected(1, .regular)
        simulation.mediaInterval = nil
        _ = simulation.run(.seconds(120))
        #expect(simulation.isSettled)
        #expect(!simulation.serverEffects.contains(.consentLost))
    }

    @Test func `is the same for the same seed`() {
        let runs = (0..<2).map { _ in connected(7, .aggressive, Self.bad).serverEffects }
        #expect(runs[0] == runs[1])
        #expect(!runs[0].isEmpty)
    }
}
