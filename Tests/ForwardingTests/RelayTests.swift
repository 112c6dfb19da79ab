import Base
import Peer
import TestSupport
import Testing
import Wire

@testable import Forwarding

@Suite struct `Batches between workers` {
    private let exchange = RelayExchange(workers: 3)
    private let sender: WorkerLinks
    private let receiver: WorkerLinks
    private let track = TrackID(number: 7)
    private let random = SeededGenerator(seed: 8)

    init() {
        sender = WorkerLinks(index: 0, exchange: exchange)
        receiver = WorkerLinks(index: 1, exchange: exchange)
    }

    private func packet(_ number: Int64) -> RelayedPacket {
        RelayedPacket(track: track, layer: 0, epoch: 1, sequenceNumber: number, captured: nil)
    }

    /// A packet that can be told from 255 others.
    private func bytes(_ number: Int64, count: Int) -> [UInt8] {
        [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: count)
    }

    private func send(_ number: Int64, count: Int = 100) {
        sender.relay(packet(number), bytes(number, count: count).span, to: 1)
    }

    /// Numbers of the packets that have arrived, and how many other items lie between them.
    private func receive() -> (packets: [Int64], notices: Int) {
        var packets: [Int64] = []
        var notices = 0
        for (source, batch) in receiver.takeAll() {
            #expect(source == 0)
            for item in batch.items {
                guard case .packet(let packet) = item else {
                    notices += 1
                    continue
                }
                packets.append(packet.sequenceNumber)
                #expect(
                    Array(batch.bytes[packet.range])
                        == bytes(packet.sequenceNumber, count: packet.range.count))
            }
        }
        return (packets, notices)
    }

    private func message(_ event: DataTrackEvent) throws -> RelayBatch.Item {
        let (stage, ann) = (try #require(StreamID("talk")), try #require(ParticipantID("ann")))
        var random = random
        return .data(
            DataTrackItem(
                stage: stage, sender: ann, session: SessionID(using: &random), label: "data:x",
                delivery: DataChannelDelivery(), event: event))
    }

    @Test func `bring packets in their order, each with its own bytes, and once`() {
        for number in Int64(65_530)..<65_560 {
            send(number, count: Int(number) % 1_300)
            if number % 3 == 0 { sender.tell(.needRendition(track), to: 1) }
        }
        #expect(receiver.takeAll().isEmpty, "they leave with their batch")
        sender.flush()
        sender.flush()
        let (packets, notices) = receive()
        #expect(packets == Array(65_530..<65_560) && notices == 10)
        #expect(receiver.takeAll().isEmpty)
        #expect(sender.sent.packets == 30)
    }

    @Test func `go to every other worker, and to none twice`() {
        sender.tellAll(.endRenditions(track))
        sender.flush()
        for index in 0..<3 {
            let links = WorkerLinks(index: index, exchange: exchange)
            #expect(links.takeAll().count == (index == 0 ? 0 : 1))
        }
        #expect(Array(receiver.others) == [0, 2])
    }

    /// Others do not wait for a worker that is stuck, and it still gets what it must not miss.
    @Test func `a worker that does not keep up loses packets, but no notices`() {
        let quarter = RelayExchange.capacity / 4
        for batch in Int64(0)..<6 {
            let count = batch == 3 ? quarter : quarter - 1
            sender.relay(packet(batch), bytes(batch, count: count).span, to: 1)
            sender.tell(.subscribe(track, batch % 2 == 0), to: 1)
            sender.flush()
        }
        let (packets, notices) = receive()
        // The first four packets leave three bytes, too few for another.
        #expect(packets == [0, 1, 2, 3] && notices == 6)
        #expect(exchange.droppedPackets(of: 1) == 2)
        #expect(exchange.droppedPackets(of: 0) == 0 && exchange.droppedPackets(of: 2) == 0)
        send(9)
        sender.flush()
        #expect(receive().packets == [9], "there is room again")
    }

    @Test func `a full batch drops only what is repeated or may be missing`() throws {
        sender.relay(packet(0), bytes(0, count: RelayExchange.capacity).span, to: 1)
        sender.flush()
        let opened = DataTrackEvent.opened(
            DataChannelOpen(label: "data:x", subprotocol: "", delivery: DataChannelDelivery()))
        let stream = try #require(StreamID("talk"))
        let kept: [RelayBatch.Item] = try [
            .want(stream, true), .withdraw(stream, order: 3), .subscribe(track, true),
            .present(stream, order: 4, []),
            .demandKeyFrame(track, layer: 0, .loss), .endRenditions(track), .rest(track, [nil]),
            message(opened), message(.closed),
        ]
        let lost: [RelayBatch.Item] = try [
            .needRendition(track), .takeLayers(track, LayerSet(0)), message(.message(.binary([1]))),
            message(.said(.string([2]))),
        ]
        for item in kept + lost { sender.tell(item, to: 1) }
        send(1)
        sender.flush()
        let (packets, notices) = receive()
        #expect(packets == [0] && notices == kept.count)
        #expect(exchange.droppedPackets(of: 1) == 5)
    }

    /// The limit is for memory, so messages of viewers count like those of speakers.
    @Test(arguments: [true, false]) func `messages take space in a batch like media`(isSaid: Bool) throws {
        let half = DataChannelMessage.binary([UInt8](repeating: 1, count: RelayExchange.capacity / 2))
        for _ in 0..<3 {
            sender.tell(try message(isSaid ? .said(half) : .message(half)), to: 1)
            sender.flush()
        }
        #expect(receive().notices == 2)
        #expect(exchange.droppedPackets(of: 1) == 1)
    }

    @Test func `a worker is woken once until it has taken its batches`() {
        let wakes = Watched(0)
        exchange.setWaker(of: 1) { wakes.change { $0 += 1 } }
        for number in Int64(0)..<3 {
            send(number)
            sender.flush()
        }
        #expect(wakes.value == 1)
        _ = receiver.takeAll()
        sender.flush()
        #expect(wakes.value == 1, "there is nothing to bring")
        send(4)
        sender.flush()
        #expect(wakes.value == 2)
    }
}

@Suite struct `A copy of a track on another worker` {
    private let rig: SlotRig
    private let exchange = RelayExchange(workers: 2)
    /// The links of the publisher's worker, and of the copy's.
    private let links: [WorkerLinks]
    private let original: Track
    private let relayed: Track
    private let copyOwner: RemoteTrackOwner
    private let feeds: [Feed]

    init() throws {
        let rig = try SlotRig(seed: 9)
        let links = [0, 1].map { [exchange] in WorkerLinks(index: $0, exchange: exchange) }
        original = rig.track(rids: ["h", "l"])
        let feeds = try ["h", "l"].map { [original] in try rig.feed(original, rid: $0, from: 65_530) }
        copyOwner = RemoteTrackOwner(worker: 0, links: links[1])
        relayed = Track(
            key: original.key, plan: original.plan,
            reader: PacketReader(formats: original.plan.formats, ids: ExtensionIDs()), owner: copyOwner,
            fanOut: rig.fanOut)
        (self.rig, self.links, self.feeds) = (rig, links, feeds)
        original.relayTo([1])
    }

    /// Receives a packet from the publisher, and passes it to the other worker.
    private func send(_ feed: Feed, isKey: Bool = false, height: Int = 360, size: Int = 40) throws {
        let payload = Feed.picture(isKey: isKey, width: 2 * height, height: height, size: size)
        let bytes = feed.packet(payload)
        feed.timestamp &+= 3_000
        guard let packet = try rig.receive(bytes, on: feed) else { return }
        original.relay(packet, bytes.span, of: feed.layer, over: links[0])
    }

    /// Lets both workers end their batches.
    private func exchangeBatches() {
        for link in links { link.flush() }
        for (_, batch) in links[1].takeAll() {
            for item in batch.items {
                switch item {
                case .packet(let packet):
                    relayed.receiveRelayed(
                        packet, batch.bytes.span.extracting(packet.range), at: rig.now, into: &rig.sink)
                case .rest(_, let rests): relayed.setRests(rests, at: rig.now)
                default: Issue.record("\(item) is not for a copy")
                }
            }
        }
        for (_, batch) in links[0].takeAll() {
            for case .demandKeyFrame(_, let layer, let reason) in batch.items {
                original.demandKeyFrame(of: layer, for: reason, at: rig.now)
            }
        }
        rig.endBatch()
    }

    @Test func `has the same packets under the same numbers, and later sources after the first`() throws {
        for number in 0..<20 { try send(feeds[0], isKey: number == 0) }
        exchangeBatches()
        let layer = try #require(relayed.layers.first)
        for number in Int64(65_530)..<65_550 {
            let (own, copied) = (feeds[0].layer.history.range(of: number), layer.history.range(of: number))
            let (first, second) = (try #require(own), try #require(copied))
            #expect(Array(feeds[0].layer.history.storage[first]) == Array(layer.history.storage[second]))
        }
        #expect(layer.epoch == feeds[0].layer.epoch)
        #expect(feeds[0].layer.restart(ssrc: 3, at: rig.now))
        let again = Feed(feeds[0].layer, ssrc: 3, from: 65_535)
        try send(again)
        exchangeBatches()
        #expect(layer.epoch == feeds[0].layer.epoch && layer.history.newest == 65_535)
        #expect(layer.history.range(of: 65_534) == nil)
    }

    @Test func `asks its publisher for the key frames of its viewers, and for few of them`() throws {
        try send(feeds[0])
        exchangeBatches()
        for slot in rig.session(video: 50).slots { slot.attach(relayed, at: rig.now) }
        exchangeBatches()
        #expect(rig.owner.demands == [.init(layer: 0, reason: .beginning)])
        rig.pass(.milliseconds(20))
        relayed.layers[0].demandKeyFrame(.repetition, at: rig.now)
        exchangeBatches()
        #expect(rig.owner.demands.count == 1)
        try send(feeds[0], isKey: true)
        exchangeBatches()
        #expect(relayed.layers[0].slots.count == 50)
        #expect(rig.owner.demands.count == 1)
    }

    @Test func `begins with what its publisher's worker has cached, and asks for nothing`() throws {
        original.relayTo([])
        for number in 0..<10 { try send(feeds[0], isKey: number == 0, height: 720) }
        for number in 0..<10 { try send(feeds[1], isKey: number == 0, height: 180) }
        let slot = try rig.slot()
        slot.attach(relayed, at: rig.now)
        original.relayTo([1])
        original.backfill(1, over: links[0], at: rig.now)
        exchangeBatches()
        #expect(slot.isReplaying && slot.current === relayed.layers[0])
        let heights = relayed.layers.map { $0.resolution?.height }
        #expect(heights == [720, 180])
        #expect(rig.owner.demands.isEmpty)
        rig.finishReplay(to: slot)
        try send(feeds[0])
        exchangeBatches()
        #expect(slot.place != nil && relayed.layers[0].history.newest == 65_540)
    }

    /// A stream that goes live, and copies that are still on their way.
    @Test func `shows nothing of the past that was forgotten meanwhile`() throws {
        original.relayTo([])
        for number in 0..<5 { try send(feeds[0], isKey: number == 0) }
        original.relayTo([1])
        original.backfill(1, over: links[0], at: rig.now)
        links[0].flush()
        rig.pass(.milliseconds(1))
        relayed.flush(at: rig.now)
        exchangeBatches()
        let (slot, layer) = (try rig.slot(), try #require(relayed.layers.first))
        #expect(layer.history.newest == nil)
        slot.attach(relayed, at: rig.now)
        #expect(!slot.isReplaying && slot.awaited === layer)
        try send(feeds[0], isKey: true)
        exchangeBatches()
        #expect(slot.current === layer && slot.awaited == nil && !slot.isReplaying)
    }

    @Test func `of large pictures begins with the smaller ones that fit`() throws {
        original.relayTo([])
        // 0.9 and 0.3 MB, of which a quarter of an inbox takes one.
        for number in 0..<900 { try send(feeds[0], isKey: number == 0, height: 720, size: 1_000) }
        for number in 0..<300 { try send(feeds[1], isKey: number == 0, height: 180, size: 1_000) }
        original.backfill(1, over: links[0], at: rig.now)
        links[0].flush()
        var layers: Set<Int> = []
        var lasts: [Bool] = []
        for (_, batch) in links[1].takeAll() {
            #expect(batch.bytes.count <= RelayExchange.capacity / 4)
            for case .packet(let packet) in batch.items {
                layers.insert(packet.layer)
                lasts.append(packet.past?.isLast ?? false)
            }
        }
        #expect(layers == [1] && lasts.count == 300)
        #expect(lasts.last == true && lasts.filter(\.self).count == 1)
    }

    @Test func `knows which layers rest, and those that it has not seen yet`() {
        let rest = LayerRest.Memory(bitrate: 90_000, resolution: VideoResolution(width: 320, height: 180))
        relayed.setRests([nil, rest], at: rig.now)
        #expect(relayed.layers.count == 2)
        #expect(relayed.layers[1].bitrate(at: rig.now) == 90_000)
        #expect(relayed.layers[1].isAvailable(at: rig.now))
        #expect(relayed.layers[1].resolution?.height == 180 && !relayed.layers[0].isAvailable(at: rig.now))
        relayed.setRests([LayerRest.Memory?](repeating: nil, count: 40), at: rig.now)
        #expect(relayed.layers.count == Track.layerLimit)
        #expect(relayed.rests == [nil, nil, nil, nil])
    }

    @Test func `takes no packet of a layer that cannot be`() throws {
        let bytes = feeds[0].packet(Feed.picture(isKey: true))
        for layer in [Track.layerLimit + RenditionLayer.allCases.count, 100] {
            let packet = RelayedPacket(
                track: original.key.track, layer: layer, epoch: 1, sequenceNumber: 1, captured: nil)
            relayed.receiveRelayed(packet, bytes.span, at: rig.now, into: &rig.sink)
        }
        #expect(relayed.layers.allSatisfy { $0.lastArrival == nil })
    }
}
