import Base
import Peer
import TestSupport
import Testing
import Wire

@testable import Forwarding

@Suite struct `Packets that wait to be sent` {
    private static let wait: Int64 = 5_300_000
    private let start = MonotonicTime(nanoseconds: 1_000_000_000)
    private var queue = OutgoingQueue(isVideo: true)

    private func packet(_ number: Int64, isKey: Bool, marker: Bool) throws -> ForwardedPacket {
        try SievedStream.packet(Feed.picture(isKey: isKey), number, 1, marker: marker)
    }

    private mutating func add(
        _ number: Int64, isKey: Bool = false, marker: Bool = false, size: Int = 100, after nanoseconds: Int64
    ) throws {
        let now = start.advanced(byNanoseconds: nanoseconds)
        queue.note(marker: marker, at: now)
        queue.append(try packet(number, isKey: isKey, marker: marker), size: size, at: now)
    }

    private func isDue(after nanoseconds: Int64, wait: Int64 = Self.wait) -> Bool {
        queue.isDue(after: wait, at: start.advanced(byNanoseconds: nanoseconds))
    }

    /// Which of some numbers wait.
    private var waiting: [Int64] { (Int64(3)...10).filter { queue.isWaiting($0) } }

    /// A history with room for few packets.
    private func history() -> PacketHistory { PacketHistory(maximumCapacity: 1 << 14, maximumPackets: 64) }

    private func store(_ numbers: some Sequence<Int64>, size: Int = 100, in history: inout PacketHistory) {
        let bytes = [UInt8](repeating: 7, count: size)
        for number in numbers { history.store(bytes.span, 0..<size, sequenceNumber: number, at: start) }
    }

    @Test mutating func `packets leave when their waiting time is over, and at once if it is zero`()
        throws
    {
        #expect(queue.isEmpty && !isDue(after: 0, wait: 0))
        try add(1, after: 0)
        try add(2, after: 2_000_000)
        #expect(!isDue(after: Self.wait - 1))
        #expect(isDue(after: Self.wait), "the first one decides")
        #expect(isDue(after: 2_000_000, wait: 0))
        #expect(!isDue(after: -1_000_000, wait: 0), "the clock went back")
    }

    @Test mutating func `packets of video leave with the end of their frame, sound does not`() throws {
        try add(1, after: 0)
        try add(2, marker: true, after: 1)
        #expect(isDue(after: 1))
        // Behind the end of a frame the next one has begun.
        try add(3, after: 2)
        #expect(!isDue(after: 2))
        queue = OutgoingQueue(isVideo: false)
        try add(1, marker: true, after: 0)
        #expect(!isDue(after: Self.wait - 1) && isDue(after: Self.wait))
    }

    @Test mutating func `packets leave at once when a viewer begins`() throws {
        var packets = history()
        store(1...3, in: &packets)
        queue.hurry()
        #expect(!isDue(after: 0), "there is nothing")
        try add(1, after: 0)
        #expect(isDue(after: 0))
        let hasBegun = queue.begin(in: &packets)
        #expect(hasBegun)
        queue.end()
        try add(2, after: 10)
        #expect(!isDue(after: 10))
    }

    @Test mutating func `are full at 32 KiB, and wait anew behind those that left`() throws {
        var packets = history()
        for number in Int64(0)..<32 { try add(number, size: 1_023, after: 0) }
        #expect(!queue.isFull)
        try add(32, size: 32, after: 0)
        #expect(queue.isFull)
        let hasBegun = queue.begin(in: &packets)
        #expect(hasBegun && queue.leaving.count == 33 && queue.isEmpty)
        queue.end()
        try add(33, size: 40, after: 7_000_000)
        #expect(!queue.isFull)
        #expect(!isDue(after: 6_999_999 + Self.wait) && isDue(after: 7_000_000 + Self.wait))
    }

    @Test mutating func `are known by their numbers until they leave`() throws {
        var packets = history()
        store(4...9, in: &packets)
        for number in [7, 4, 9] as [Int64] { try add(number, after: 0) }
        #expect(waiting == [4, 7, 9])
        _ = queue.begin(in: &packets)
        #expect(waiting.isEmpty)
        queue.end()
        try add(8, after: 0)
        queue.removeWaiting()
        #expect(waiting.isEmpty && queue.isEmpty && !isDue(after: Self.wait))
    }

    @Test mutating func `a packet that the history has overwritten has no place in it`() throws {
        var packets = history()
        store(1...2, in: &packets)
        try add(1, after: 0)
        try add(2, isKey: true, after: 0)
        store(100...140, size: 1_000, in: &packets)
        try add(140, after: 0)
        _ = queue.begin(in: &packets)
        let leaving = queue.leaving
        let newest = packets.range(of: 140)
        #expect(leaving.map(\.sequenceNumber) == [1, 2, 140])
        #expect(leaving[0].place.isEmpty && leaving[1].place.isEmpty)
        #expect(leaving[2].place.lowerBound == newest?.lowerBound)
        #expect(queue.leavingKeyFrame == 1)
        queue.end()
        #expect(queue.leaving.isEmpty)
    }

    @Test mutating func `of sound begin no key frame and get no padding`() throws {
        var packets = history()
        store(1...2, in: &packets)
        queue = OutgoingQueue(isVideo: false)
        try add(1, isKey: true, after: 0)
        try add(2, after: 0)
        _ = queue.begin(in: &packets)
        #expect(queue.leavingKeyFrame == nil)
        #expect(queue.leaving.allSatisfy { $0.padding == 0 && $0.place.count == 100 })
        let isEmpty = !queue.begin(in: &packets)
        #expect(isEmpty)
    }
}

@Suite struct `A fan-out` {
    private let rig: SlotRig
    private let video: Track
    private let audio: Track
    private let pictures: Feed
    private let sound: Feed
    private let viewer: Session

    /// A viewer of a picture and its sound.
    init() throws {
        let rig = try SlotRig(seed: 10)
        (video, audio) = (rig.track(), rig.track(.audio))
        (pictures, sound) = (try rig.feed(video), try rig.feed(audio))
        viewer = rig.session(audio: 1, video: 1)
        self.rig = rig
        viewer.slots[0].attach(audio, at: rig.now)
        viewer.slots[1].attach(video, at: rig.now)
        try rig.send(sound)
        try rig.send(pictures, isKey: true)
    }

    private var sent: [UInt64] { viewer.slots.map { rig.sent(to: $0) } }

    /// Makes the worker so busy that packets wait for two bursts.
    private func load() throws {
        let (track, crowd) = (rig.track(), rig.session(video: 50))
        let feed = try rig.feed(track)
        for slot in crowd.slots { slot.attach(track, at: rig.now) }
        try rig.send(feed, isKey: true)
        // 500 packets each 6.7 ms are some 75,000 a second.
        for _ in 0..<100 {
            for packet in 0..<10 {
                let payload = packet == 0 ? Feed.picture(isKey: false) : Feed.rest()
                try rig.receive(feed.packet(payload, marker: packet == 9), on: feed)
            }
            feed.timestamp &+= 3_000
            rig.endBatch()
            rig.pass(.microseconds(6_700))
        }
        for slot in crowd.slots { slot.detach() }
    }

    @Test func `sends what a batch brought when it ends, while there is little to do`() throws {
        for _ in 0..<3 { try rig.send(pictures, endsBatch: false) }
        try rig.send(sound, endsBatch: false)
        #expect(sent == [1, 1])
        rig.endBatch()
        #expect(sent == [2, 4])
        #expect(rig.fanOut.deadline == nil)
        rig.endBatch()
        #expect(sent == [2, 4])
    }

    @Test func `lets packets of a busy worker wait for their frame, and sound for pictures`() throws {
        try load()
        let before = sent
        let start = rig.now
        try rig.receive(pictures.packet(Feed.picture(isKey: false), marker: false), on: pictures)
        try rig.send(sound)
        #expect(sent == before)
        #expect(rig.fanOut.deadline == start.advanced(byNanoseconds: Patience.usual))
        rig.pass(.milliseconds(3))
        try rig.receive(pictures.packet(Feed.rest()), on: pictures)
        rig.endBatch()
        #expect(sent == [before[0] + 1, before[1] + 2])
        #expect(rig.fanOut.deadline == nil)
        // Sound alone waits no longer than that.
        let later = rig.now
        try rig.send(sound)
        #expect(rig.fanOut.deadline == later.advanced(byNanoseconds: Patience.usual))
        rig.now = later.advanced(byNanoseconds: Patience.usual - 1)
        rig.endBatch()
        #expect(sent[0] == before[0] + 1)
        rig.now = later.advanced(byNanoseconds: Patience.usual)
        rig.endBatch()
        #expect(sent[0] == before[0] + 2)
    }

    @Test func `a viewer who begins makes the packets that wait for others leave first`() throws {
        try load()
        let before = sent[1]
        let late = try rig.slot()
        late.attach(video, at: rig.now)
        rig.finishReplay(to: late)
        late.detach()
        // What is cached is forgotten, so that the next one has to wait for a key frame.
        video.flush(at: rig.now)
        late.attach(video, at: rig.now)
        try rig.receive(pictures.packet(Feed.picture(isKey: false), marker: false), on: pictures)
        rig.endBatch()
        #expect(sent[1] == before)
        pictures.timestamp &+= 3_000
        let counted = rig.sent(to: late)
        try rig.receive(pictures.packet(Feed.picture(isKey: true), marker: false), on: pictures)
        #expect(sent[1] == before + 1, "what waited goes first")
        rig.endBatch()
        #expect(sent[1] == before + 2 && rig.sent(to: late) == counted + 1)
    }

    @Test func `sends a burst in parts, none of which is lost or sent twice`() throws {
        let first = sent[1]
        for packet in 0..<100 {
            let payload = packet == 0 ? Feed.picture(isKey: false, size: 1_000) : Feed.rest(size: 1_000)
            try rig.receive(pictures.packet(payload, marker: packet == 99), on: pictures)
        }
        #expect(sent[1] == first + 99, "33 packets of 1,012 bytes fill the queue")
        rig.endBatch()
        #expect(sent[1] == first + 100)
    }

    @Test func `survives a clock that goes back`() throws {
        try load()
        let before = sent
        try rig.send(sound)
        rig.now = MonotonicTime(nanoseconds: rig.now.nanoseconds - 1_000_000_000)
        rig.endBatch()
        try rig.send(sound)
        rig.pass(.seconds(2))
        rig.endBatch()
        #expect(sent[0] == before[0] + 2)
    }
}
