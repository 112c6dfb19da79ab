import Base
import TestSupport
import Testing
import Transcoder
import Wire

@Suite struct `A gap in what is assembled` {
    private var assembler = FrameAssembler()

    /// A VP8 packet whose content is its number.
    private static func packet(
        _ number: Int64, time: UInt32, isEntry: Bool = false, ends: Bool = false
    ) -> InputPacket {
        InputPacket(
            sequenceNumber: number, timestamp: time, marker: ends, codec: .vp8, isEntryPoint: isEntry,
            arrival: .zero, payload: [0x10, UInt8(truncatingIfNeeded: number)])
    }

    private static func at(_ milliseconds: Int) -> MonotonicTime { .zero + .milliseconds(milliseconds) }

    private mutating func insert(_ packets: InputPacket..., at milliseconds: Int) -> [AssembledFrame] {
        packets.flatMap { assembler.insert($0, at: Self.at(milliseconds)) }
    }

    /// With a key frame, number 0, that has been returned.
    private mutating func begin() {
        _ = insert(Self.packet(0, time: 10, isEntry: true, ends: true), at: 0)
    }

    /// A key frame takes longer than that on a slow path, and would be requested again for ever.
    @Test mutating func `is over once its packet is there, however long the frame lasts`() {
        begin()
        _ = insert(Self.packet(1, time: 20), Self.packet(3, time: 20), at: 0)
        _ = insert(Self.packet(2, time: 20), at: 50)
        let late = assembler.advance(to: Self.at(400))
        #expect(late.isEmpty && !assembler.needsKeyFrame)
        let frames = insert(Self.packet(4, time: 20, ends: true), at: 401)
        #expect(frames.map(\.bytes) == [[1, 2, 3, 4]])
    }

    @Test mutating func `behind another one is waited for as long`() {
        begin()
        _ = insert(Self.packet(1, time: 20), Self.packet(3, time: 20), at: 0)
        _ = insert(Self.packet(5, time: 20, ends: true), at: 10)
        _ = insert(Self.packet(2, time: 20), at: 200)
        _ = assembler.advance(to: Self.at(449))
        #expect(!assembler.needsKeyFrame)
        var other = assembler
        _ = other.advance(to: Self.at(450))
        #expect(other.needsKeyFrame)
        let frames = insert(Self.packet(4, time: 20), at: 449)
        #expect(frames.map(\.bytes) == [[1, 2, 3, 4, 5]])
    }

    @Test mutating func `is not waited for longer because something comes twice`() {
        begin()
        for milliseconds in [0, 100, 200, 249] { _ = insert(Self.packet(2, time: 30), at: milliseconds) }
        _ = assembler.advance(to: Self.at(250))
        #expect(assembler.needsKeyFrame)
    }

    @Test mutating func `leaves nothing of the frame that was given up`() {
        begin()
        _ = insert(Self.packet(1, time: 20), Self.packet(3, time: 20, ends: true), at: 0)
        _ = assembler.advance(to: Self.at(250))
        let late = insert(Self.packet(2, time: 20), at: 260)
        #expect(late.isEmpty)
        let next =
            insert(Self.packet(4, time: 30, isEntry: true, ends: true), at: 261)
            + insert(Self.packet(5, time: 40, ends: true), at: 261)
        #expect(next.map(\.bytes) == [[4], [5]] && next.map(\.isKeyFrame) == [true, false])
    }

    @Test mutating func `does not matter where a packet comes that was used already`() {
        begin()
        _ = insert(Self.packet(1, time: 20, ends: true), at: 1)
        let again = insert(
            Self.packet(0, time: 10, isEntry: true, ends: true), Self.packet(1, time: 20, ends: true), at: 2)
        #expect(again.isEmpty)
        let next = insert(Self.packet(2, time: 30, ends: true), at: 3)
        #expect(next.map(\.bytes) == [[2]])
    }

    /// A sender may lose the packet with the marker, at any time of its clock.
    @Test mutating func `is none between two frames of which the first has no marker`() {
        let frames = insert(
            Self.packet(0, time: .max, isEntry: true), Self.packet(1, time: 2_999, ends: true), at: 0)
        #expect(frames.map(\.timestamp) == [.max, 2_999] && frames.map(\.bytes) == [[0], [1]])
    }

    // MARK: H.264, whose parameter sets are a packet of their own

    private static func unit(_ number: Int64, _ payload: [UInt8], ends: Bool = false) -> InputPacket {
        InputPacket(
            sequenceNumber: number, timestamp: 20, marker: ends, codec: .h264,
            isEntryPoint: [0x67, 0x65].contains(payload[0]), arrival: .zero, payload: payload)
    }

    @Test mutating func `takes in parameter sets that their picture has overtaken`() {
        _ = insert(Self.unit(6, [0x65, 0x88, 1]), at: 0)
        _ = insert(Self.unit(5, [0x67, 0x42]), at: 5)
        let frames = insert(Self.unit(7, [0x41, 2], ends: true), at: 10)
        #expect(frames.first?.bytes == hexBytes("00000001 6742 00000001 658801 00000001 4102"))
        #expect(frames.first?.isKeyFrame == true)
    }

    /// The sequence's is an entry point, the picture's is none.
    @Test(arguments: [[6, 7, 5], [7, 6, 5], [7, 5, 6], [5, 7, 6]] as [[Int64]])
    mutating func `takes in both parameter sets, in whatever order they come`(order: [Int64]) {
        let units: [Int64: [UInt8]] = [5: [0x67, 0x42], 6: [0x68, 0xCE], 7: [0x65, 0x88, 1]]
        for number in order {
            let early = insert(Self.unit(number, units[number] ?? []), at: Int(number))
            #expect(early.isEmpty)
        }
        // Nothing is missing, however long the frame lasts.
        let none = assembler.advance(to: Self.at(400))
        #expect(none.isEmpty)
        let frames = insert(Self.unit(8, [0x41, 2], ends: true), at: 401)
        #expect(
            frames.map(\.bytes)
                == [hexBytes("00000001 6742 00000001 68CE 00000001 658801 00000001 4102")])
        #expect(frames.map(\.isKeyFrame) == [true] && !assembler.needsKeyFrame)
    }

    /// The first parameter set never comes, without which the other is of no use.
    @Test mutating func `is none where only earlier packets of the first frame wait`() {
        _ = insert(Self.unit(6, [0x68, 0xCE]), Self.unit(7, [0x65, 0x88, 1]), at: 0)
        let none = assembler.advance(to: Self.at(400))
        #expect(none.isEmpty)
        let frames = insert(Self.unit(8, [0x41, 2], ends: true), at: 401)
        #expect(frames.map(\.bytes) == [hexBytes("00000001 658801 00000001 4102")])
    }

    @Test mutating func `takes in no parameter sets of another picture`() {
        _ = insert(Self.unit(6, [0x65, 0x88, 1]), at: 0)
        var earlier = Self.unit(5, [0x67, 0x42])
        earlier.timestamp = 10
        _ = insert(earlier, at: 5)
        let frames = insert(Self.unit(7, [0x41, 2], ends: true), at: 10)
        #expect(frames.first?.bytes == hexBytes("00000001 658801 00000001 4102"))
    }

    // MARK: Any network

    private struct Sent {
        let packets: [InputPacket]

        var time: UInt32 { packets[0].timestamp }
        var isKeyFrame: Bool { packets[0].isEntryPoint }
        var bytes: [UInt8] { packets.flatMap { $0.payload.dropFirst() } }
    }

    /// Frames of up to five packets, over the end of the time stamps; every thirtieth is a key frame.
    private static func frames(_ count: Int, _ random: inout SeededGenerator) -> [Sent] {
        var number: Int64 = 65_530
        return (0..<count).map { index in
            let size = Int.random(in: 1...5, using: &random)
            defer { number += Int64(size) }
            return Sent(
                packets: (0..<size).map { place in
                    packet(
                        number + Int64(place), time: UInt32.max - 150_000 &+ UInt32(index) &* 3_000,
                        isEntry: place == 0 && index % 30 == 0, ends: place == size - 1)
                })
        }
    }

    /// What comes of packets in the order of their arrival, in milliseconds.
    private static func assembled(_ arrivals: [(at: Int, packet: InputPacket)]) -> [AssembledFrame] {
        var assembler = FrameAssembler()
        var frames: [AssembledFrame] = []
        let ordered = arrivals.sorted {
            ($0.at, $0.packet.sequenceNumber) < ($1.at, $1.packet.sequenceNumber)
        }
        for arrival in ordered {
            frames += assembler.advance(to: at(arrival.at))
            frames += assembler.insert(arrival.packet, at: at(arrival.at))
        }
        return frames + assembler.advance(to: at((ordered.last?.at ?? 0) + 1_000))
    }

    @Test(arguments: ChosenSeed.or(0...19))
    func `costs nothing where all packets come in time, in whatever order`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let sent = Self.frames(150, &random)
        var arrivals: [(at: Int, packet: InputPacket)] = []
        for (index, frame) in sent.enumerated() {
            for packet in frame.packets {
                // One in ten is sent again.
                let isLost = Int.random(in: 0..<10, using: &random) == 0
                let delay = Int.random(in: isLost ? 100...200 : 0...30, using: &random)
                arrivals.append((index * 33 + delay, packet))
            }
        }
        let frames = Self.assembled(arrivals)
        #expect(frames.map(\.timestamp) == sent.map(\.time))
        #expect(frames.map(\.bytes) == sent.map(\.bytes))
    }

    @Test(arguments: ChosenSeed.or(0...19))
    func `is never followed by a picture that refers to what is missing`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let sent = Self.frames(300, &random)
        var arrivals: [(at: Int, packet: InputPacket)] = []
        for (index, frame) in sent.enumerated() {
            for packet in frame.packets where Int.random(in: 0..<60, using: &random) > 0 {
                arrivals.append((index * 33 + Int.random(in: 0...40, using: &random), packet))
            }
        }
        var last = -1
        for frame in Self.assembled(arrivals) {
            let place = sent.firstIndex { $0.time == frame.timestamp }
            let index = try #require(place)
            #expect(index > last, "frames go forward")
            #expect(index == last + 1 || frame.isKeyFrame, "frame \(index) comes behind frame \(last)")
            #expect(frame.bytes == sent[index].bytes && frame.isKeyFrame == sent[index].isKeyFrame)
            last = index
        }
        // Three in a hundred frames are lost, and up to a group of pictures with each.
        #expect(last > 200)
    }
}
