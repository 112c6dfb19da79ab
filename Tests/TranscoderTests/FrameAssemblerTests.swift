import Base
import CLinux
import TestSupport
import Testing
import Transcoder
import Wire

@Suite final class `A frame assembler` {
    private var assembler = FrameAssembler()

    /// A VP8 packet of the frame at `time`; the first of a key frame where `isEntry`.
    private func packet(
        _ number: Int64, time: UInt32, isEntry: Bool = false, ends: Bool = true, epoch: UInt32 = 0
    ) -> InputPacket {
        InputPacket(
            sequenceNumber: number, timestamp: time, marker: ends, codec: .vp8, isEntryPoint: isEntry,
            epoch: epoch, arrival: .zero, payload: [0x10, UInt8(truncatingIfNeeded: number)])
    }

    private func insert(_ packet: InputPacket, at now: MonotonicTime) -> [AssembledFrame] {
        assembler.insert(packet, at: now)
    }

    private func advance(to now: MonotonicTime) -> [AssembledFrame] { assembler.advance(to: now) }

    private func times(_ frames: [AssembledFrame]) -> [UInt32] { frames.map(\.timestamp) }

    @Test func `begins with a key frame`() {
        #expect(insert(packet(1, time: 10), at: .zero).isEmpty)
        #expect(assembler.needsKeyFrame)
        let frames = insert(packet(2, time: 20, isEntry: true), at: .zero)
        #expect(times(frames) == [20])
        #expect(frames.first?.isKeyFrame == true)
        #expect(frames.first?.bytes == [2])
        #expect(!assembler.needsKeyFrame)
        #expect(times(insert(packet(3, time: 30), at: .zero)) == [30])
    }

    @Test func `waits for the packets of a frame in whatever order they come`() {
        #expect(insert(packet(5, time: 10, isEntry: true, ends: false), at: .zero).isEmpty)
        #expect(insert(packet(7, time: 10), at: .zero).isEmpty)
        #expect(insert(packet(8, time: 20), at: .zero).isEmpty)
        let frames = insert(packet(6, time: 10, ends: false), at: .zero)
        #expect(times(frames) == [10, 20])
        #expect(frames.first?.bytes == [5, 6, 7])
    }

    @Test func `gives up what is missing, and asks for a key frame`() {
        _ = insert(packet(1, time: 10, isEntry: true), at: .zero)
        #expect(insert(packet(3, time: 30), at: .zero).isEmpty)
        #expect(advance(to: .zero + .milliseconds(200)).isEmpty)
        #expect(!assembler.needsKeyFrame)
        _ = advance(to: .zero + .milliseconds(300))
        #expect(assembler.needsKeyFrame)
        #expect(insert(packet(4, time: 40), at: .zero + .milliseconds(301)).isEmpty)
        let frames = insert(packet(5, time: 50, isEntry: true), at: .zero + .milliseconds(302))
        #expect(times(frames) == [50])
    }

    @Test func `goes on with a key frame that came behind a gap`() {
        _ = insert(packet(1, time: 10, isEntry: true), at: .zero)
        _ = insert(packet(3, time: 30, isEntry: true), at: .zero)
        #expect(times(insert(packet(4, time: 40), at: .zero)) == [])
        #expect(times(advance(to: .zero + .seconds(1))) == [30, 40])
    }

    @Test func `starts anew with another source`() {
        _ = insert(packet(100, time: 10, isEntry: true), at: .zero)
        #expect(insert(packet(3, time: 5, epoch: 1), at: .zero).isEmpty)
        #expect(assembler.needsKeyFrame)
        let frames = insert(packet(4, time: 9, isEntry: true, epoch: 1), at: .zero)
        #expect(times(frames) == [9])
        #expect(frames.first?.epoch == 1)
    }

    /// Whatever comes, memory is bounded and frames go forward.
    @Test(arguments: 0..<20) func `survives anything`(_ seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var assembler = FrameAssembler()
        var now = MonotonicTime.zero
        var last: Int64 = .min
        for _ in 0..<3_000 {
            now = now + .milliseconds(Int64.random(in: 0...40, using: &random))
            let number = Int64.random(in: 0...5_000, using: &random)
            var packet = packet(
                number, time: UInt32(number / 3), isEntry: number % 30 == 0, ends: number % 3 == 2)
            packet.codec = InputCodec(rawValue: UInt8.random(in: 0...4, using: &random)) ?? .vp8
            packet.payload = (0..<Int.random(in: 0...40, using: &random)).map { _ in
                UInt8.random(in: 0...255, using: &random)
            }
            for frame in assembler.insert(packet, at: now) + assembler.advance(to: now) {
                #expect(Int64(frame.timestamp) > last)
                last = Int64(frame.timestamp)
            }
        }
    }

    /// CPU time of a frame of so many packets, none of which ends it.
    private func cost(packets count: Int) -> Int64 {
        var least = Int64.max
        for _ in 0..<3 {
            var assembler = FrameAssembler()
            let began = clinux_thread_nanoseconds()
            for number in 1...Int64(count) {
                _ = assembler.insert(packet(number, time: 10, isEntry: number == 1, ends: false), at: .zero)
            }
            least = min(least, clinux_thread_nanoseconds() - began)
        }
        return least
    }

    @Test func `does not walk over a long frame again for each of its packets`() {
        // Eight times the packets: eight times the work, not sixty-four times.
        let few = cost(packets: 250)
        let many = cost(packets: 2_000)
        #expect(many < few * 24, "250 packets took \(few) ns, 2,000 took \(many) ns")
    }

    @Test func `goes on where it came to, whatever comes between`() {
        for number in 1...5 as ClosedRange<Int64> {
            #expect(insert(packet(number, time: 10, isEntry: number == 1, ends: false), at: .zero).isEmpty)
        }
        #expect(insert(packet(7, time: 10), at: .zero).isEmpty)
        #expect(insert(packet(9, time: 20), at: .zero).isEmpty)
        #expect(times(insert(packet(6, time: 10, ends: false), at: .zero)) == [10])
        #expect(times(insert(packet(8, time: 20, ends: false), at: .zero)) == [20])
    }
}

@Suite struct `A frame depacketizer` {
    @Test func `joins aggregated and fragmented H.264 units`() throws {
        let aggregate: [UInt8] = [24, 0, 2, 0x67, 1, 0, 2, 0x68, 2]
        let fragments: [[UInt8]] = [[0x7C, 0x85, 10], [0x7C, 0x05, 11], [0x7C, 0x45, 12]]
        let frame = try FrameDepacketizer.frame(.h264, [aggregate] + fragments)
        #expect(frame == [0, 0, 0, 1, 0x67, 1, 0, 0, 0, 1, 0x68, 2, 0, 0, 0, 1, 0x65, 10, 11, 12])
    }

    @Test func `gives AV1 units their sizes`() throws {
        // Two elements, of which the last goes on in the next packet.
        let first: [UInt8] = [0x28, 2, 0x08, 0xAA, 0x30, 1, 2]
        let second: [UInt8] = [0x90, 3, 4]
        let frame = try FrameDepacketizer.frame(.av1, [first, second])
        #expect(frame == [0x12, 0, 0x0A, 1, 0xAA, 0x32, 4, 1, 2, 3, 4])
    }

    @Test func `tells the layers of a VP9 picture apart`() throws {
        // I = 0, P = 0, L = 1, F = 0, B and E: layer 0, then layer 1.
        let first: [UInt8] = [0x2C, 0x00, 0x00, 1, 2]
        let second: [UInt8] = [0x2C, 0x02, 0x00, 3]
        let frame = try FrameDepacketizer.frame(.vp9, [first, second])
        let marker: UInt8 = 0b1101_1001
        #expect(frame == [1, 2, 3, marker, 2, 0, 0, 0, 1, 0, 0, 0, marker])
    }

    @Test(arguments: [VideoCodec.vp8, .vp9, .h264, .av1, .hevc], 0..<10)
    func `survives anything`(_ codec: VideoCodec, seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        for _ in 0..<500 {
            let payloads = (0..<Int.random(in: 0...4, using: &random)).map { _ in
                (0..<Int.random(in: 0...30, using: &random)).map { _ in
                    UInt8.random(in: 0...255, using: &random)
                }
            }
            _ = try? FrameDepacketizer.frame(codec, payloads)
        }
    }

    @Test(
        arguments: [
            // Aggregates whose unit is cut off, or whose length is; a fragment without its header; an absurd length.
            (.h264, [[24, 0, 3, 0x67, 1]]), (.h264, [[24, 0, 1, 0x67, 0]]), (.h264, [[0x7C]]),
            (.hevc, [[0x62, 1]]), (.av1, [[0x20, 5, 1]]), (.av1, [[0, 0x80]]),
            (.av1, [[0, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1]]), (.vp8, [[0x80]]), (.vp9, [[0xA0]]),
        ] as [(VideoCodec, [[UInt8]])])
    func `refuses what is cut off`(codec: VideoCodec, payloads: [[UInt8]]) {
        #expect(throws: WireError.self) { try FrameDepacketizer.frame(codec, payloads) }
    }

    @Test func `passes over what is empty, or of a kind that it does not know`() throws {
        let unit: [UInt8] = [0x65, 1]
        let others: [[UInt8]] = [
            [], [0x40], [25, 1], [26, 1], [27, 1], [0x7D, 1], [30, 1], [31, 1], [24],
        ]
        #expect(try FrameDepacketizer.frame(.h264, others + [unit]) == [0, 0, 0, 1, 0x65, 1])
        // Fragments of nothing, before the rest of the unit.
        let fragments: [[UInt8]] = [[0x7C, 0x85], [0x7C, 5], [0x7C, 0x45, 9]]
        #expect(try FrameDepacketizer.frame(.h264, fragments) == [0, 0, 0, 1, 0x65, 9])
        // The end of a unit whose beginning was in a packet before.
        #expect(
            try FrameDepacketizer.frame(.av1, [[0x90, 1, 2], [0x10, 0x30, 7]]) == [0x12, 0, 0x32, 1, 7])
        #expect(try FrameDepacketizer.frame(.av1, [[], [0]]) == [0x12, 0])
    }
}
