import Base
import ClientPeer
import Peer
import TestTraits
import Testing
import Wire

@Suite(.simulated, .sctpTurn) struct `What viewers say on a data track` {
    private func open(_ label: String, by id: SessionID, in simulation: StageSimulation) throws -> UInt16 {
        let now = simulation.now
        let stream: UInt16? = try simulation.with(id) { try $0.open(label, at: now, into: &$1) } ?? nil
        return try #require(stream)
    }

    private func close(_ stream: UInt16, by id: SessionID, in simulation: StageSimulation) {
        let now = simulation.now
        _ = simulation.with(id) { client, sink in
            client.connection?.closeDataChannel(stream, at: now, into: &sink)
        }
    }

    /// A client may have 64 channels at a time.
    @Test func `is heard by all others, however many tracks there were before`() throws {
        let simulation = try StageSimulation(seed: 15)
        simulation.letViewersSend()
        let host = try simulation.add(audio: 0, video: 0, isHost: true)
        let listener = try simulation.addViewer(hasChannels: true)
        // They take turns, as each may say five things a second.
        let talkers = try (0..<3).map { _ in try simulation.addViewer(hasChannels: true) }
        let viewers = [listener] + talkers
        let areThere = simulation.run(for: .seconds(5)) {
            simulation.hasControl(host) && viewers.allSatisfy(simulation.hasControl)
        }
        try #require(areThere)
        for number in 0..<70 {
            let label = "data:\(number)"
            let track = try open(label, by: host, in: simulation)
            let isOpen = simulation.run(for: .seconds(2)) {
                viewers.allSatisfy { simulation.clients[$0]?.hasTrack(label) == true }
            }
            try #require(isOpen, "\(label)")
            let talker = talkers[number % talkers.count]
            let name = try #require(simulation.clients[talker]?.name)
            let channel = try open(label, by: talker, in: simulation)
            let now = simulation.now
            try simulation.with(talker) {
                try $0.send(DataChannelMessage("\(number)"), on: channel, at: now, into: &$1)
            }
            let said = DataChannelMessage(#"{"from":"\#(name)","text":"\#(number)"}"#)
            let isHeard = simulation.run(for: .seconds(2)) {
                [host, listener].allSatisfy { simulation.clients[$0]?.messages(label).contains(said) == true }
            }
            try #require(isHeard, "\(label)")
            close(channel, by: talker, in: simulation)
            close(track, by: host, in: simulation)
            let isOver = simulation.run(for: .seconds(2)) {
                viewers.allSatisfy { simulation.clients[$0]?.hasTrack(label) == false }
            }
            try #require(isOver, "\(label)")
        }
    }
}

extension StageClient {
    /// Whether what somebody on stage sends on a track comes on an open channel; nil if there never was one.
    fileprivate func hasTrack(_ label: String) -> Bool? {
        var stream: UInt16?
        var isOpen: Bool?
        for event in dataEvents {
            switch event {
            // What viewers say comes on a channel without the name of a sender.
            case .opened(let new, let open) where open.label == label && !open.subprotocol.isEmpty:
                stream = new
                isOpen = true
            case .closed(let old) where old == stream: isOpen = false
            default: break
            }
        }
        return isOpen
    }
}
