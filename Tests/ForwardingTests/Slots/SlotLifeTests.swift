import Base
import Peer
import TestSupport
import Testing
import Wire

@testable import Forwarding

/// What holds of every slot, whatever is done with slots, tracks and sources.
@Suite struct `The life of slots` {
    private final class World {
        let rig: SlotRig
        let tracks: [Track]
        let slots: [Slot]
        private(set) var feeds: [Feed]
        private var random: SeededGenerator
        private var lastSSRC: UInt32 = 50_000

        init(seed: UInt64) throws {
            let rig = try SlotRig(seed: seed)
            let tracks = [rig.track(), rig.track(), rig.track(.audio), rig.track(rids: ["h", "l"])]
            var slots: [Slot] = []
            for _ in 0..<4 { slots += rig.session(audio: 1, video: 2).slots }
            var feeds = try tracks.prefix(3).map { try rig.feed($0, from: 65_500) }
            for rid in ["h", "l"] { feeds.append(try rig.feed(tracks[3], rid: rid)) }
            (self.rig, self.tracks, self.slots, self.feeds) = (rig, tracks, slots, feeds)
            random = SeededGenerator(seed: ~seed)
        }

        private func number(below end: Int) -> Int { Int.random(in: 0..<end, using: &random) }

        /// - Returns: what was done, for the message of a failure.
        func step() throws -> String {
            let index = number(below: slots.count)
            let slot = slots[index]
            switch number(below: 12) {
            case 0:
                let track = tracks[number(below: tracks.count)]
                guard track.kind == slot.plan.kind else { return "nothing" }
                slot.attach(track, at: rig.now)
                return "attach \(track.key.track) to \(index)"
            case 1:
                guard number(below: 3) == 0 else { return "nothing" }
                slot.detach()
                return "detach \(index)"
            case 2:
                guard slot.plan.kind == .video else { return "nothing" }
                let grants: [Slot.Grant] = [.nothing, .best, .layer(number(below: 2)), .thinned(0)]
                slot.grant = grants[number(below: grants.count)]
                slot.track?.retarget(slot, at: rig.now)
                return "grant \(index) \(slot.grant)"
            case 3:
                guard number(below: 3) == 0 else { return "nothing" }
                let isAudioOnly = number(below: 2) == 0
                slot.session.prefer(DeliveryPreferences(isAudioOnly: isAudioOnly), at: rig.now)
                return "prefer sound alone \(isAudioOnly) by \(index)"
            case 4:
                let track = tracks[number(below: tracks.count)]
                track.flush(at: rig.now)
                return "flush \(track.key.track)"
            case 5: return try restart()
            case 6:
                slot.limit(to: [nil, 1, 360][number(below: 3)], at: rig.now)
                return "limit \(index)"
            case 7: return advance()
            default: return try send()
            }
        }

        private func restart() throws -> String {
            guard number(below: 4) == 0 else { return "nothing" }
            let place = number(below: feeds.count)
            lastSSRC += 1
            guard feeds[place].layer.restart(ssrc: lastSSRC, at: rig.now) else { return "nothing" }
            feeds[place] = Feed(feeds[place].layer, ssrc: lastSSRC, from: UInt16(number(below: 65_536)))
            return "restart feed \(place)"
        }

        private func advance() -> String {
            rig.pass(.milliseconds(number(below: 8) == 0 ? 1_500 : 5))
            rig.endBatch()
            for slot in slots where slot.isReplaying { slot.advanceReplay(at: rig.now, into: &rig.sink) }
            return "advance"
        }

        private func send() throws -> String {
            let place = number(below: feeds.count)
            // Some are lost and never arrive.
            if number(below: 20) == 0 { feeds[place].number &+= UInt16(number(below: 3)) }
            let isKey = number(below: 6) == 0
            try rig.send(
                feeds[place], isKey: isKey, height: feeds[place].layer.rid == "l" ? 180 : 360,
                size: number(below: 3) == 0 ? 1_100 : 60, endsBatch: number(below: 2) == 0)
            return "send on \(place), key frame \(isKey)"
        }
    }

    /// The rule that a slot breaks; nil for none.
    private func violation(of slot: Slot) -> String? {
        let isListed = slot.place != nil
        if isListed != (slot.current?.slots.contains(slot) ?? false) { return "its place is not in the list" }
        if (slot.awaited == nil) != (slot.awaitedPlace == nil) { return "it is not where it awaits a layer" }
        if (slot.track == nil) != (slot.subscribedPlace == nil) { return "its track does not know of it" }
        if slot.isStopped, isListed { return "it is stopped, and sent packets" }
        if slot.isReplaying, !isListed { return "it is sent the past alone" }
        if let current = slot.current, current.track === slot.track, !slot.isStopped, !isListed {
            return "it counts as sent, and is not"
        }
        let isAllowed = !slot.session.preferences.isAudioOnly && slot.grant != .nothing
        if slot.plan.kind == .video, !isAllowed, isListed || slot.awaited != nil {
            return "it gets pictures that it must not have"
        }
        return nil
    }

    @Test(arguments: UInt64(1)...30)
    func `a slot is only in lists where it belongs, and gets only what it may have`(
        seed: UInt64
    ) throws {
        let world = try World(seed: seed)
        for step in 0..<500 {
            let action = try world.step()
            let broken = world.slots.compactMap { violation(of: $0) }
            try #require(broken.isEmpty, "\(broken) after step \(step): \(action)")
        }
        // Nobody is left when all have gone, and each list is empty.
        for slot in world.slots { slot.detach() }
        for feed in world.feeds { #expect(feed.layer.slots.isEmpty && !feed.layer.isTaken) }
        let before = world.slots.map { world.rig.sent(to: $0) }
        for feed in world.feeds { try world.rig.send(feed, isKey: true) }
        let after = world.slots.map { world.rig.sent(to: $0) }
        #expect(after == before)
    }
}
