import Base
import TestSupport
import Testing
import Wire

@testable import Net

/// An RTP packet of version 2, as far as a queue looks into it.
func rtp(ssrc: UInt32, timestamp: UInt32, size: Int, number: UInt8 = 0) -> [UInt8] {
    var bytes: [UInt8] = [0x80, 96, 0, number]
    for value in [timestamp, ssrc] {
        for shift in [24, 16, 8, 0] as [UInt32] { bytes.append(UInt8(truncatingIfNeeded: value >> shift)) }
    }
    return bytes + Array(repeating: number, count: max(size - 12, 0))
}

/// The datagrams in what left a queue.
private func datagrams(in stream: [UInt8]) throws -> [[UInt8]] {
    var reader = FrameReader()
    var found: [[UInt8]] = []
    try reader.read(stream[...]) { datagram in found.append((0..<datagram.count).map { datagram[$0] }) }
    #expect(reader.isBetweenFrames)
    return found
}

@Suite struct FrameQueueTests {
    private let video: UInt32 = 7
    private let audio: UInt32 = 8
    private let limits: FrameQueue.Limits

    init() {
        var limits = FrameQueue.Limits()
        limits.videoBytes = 10_000
        limits.bytes = 12_000
        limits.resumeBytes = 2_000
        self.limits = limits
    }

    private func time(_ milliseconds: Int64) -> MonotonicTime {
        MonotonicTime(nanoseconds: milliseconds * 1_000_000)
    }

    private func drain(_ queue: inout FrameQueue, atMost count: Int = .max) -> [UInt8] {
        var stream: [UInt8] = []
        while !queue.isEmpty, stream.count < count {
            _ = queue.send { bytes in
                stream += bytes.prefix(count - stream.count)
                return min(bytes.count, count)
            }
        }
        return stream
    }

    @Test func `keeps datagrams in their order`() throws {
        var queue = FrameQueue()
        let sent = (0..<20).map { rtp(ssrc: video, timestamp: 1, size: 100 + $0, number: UInt8($0)) }
        for datagram in sent { queue.append(datagram.span, at: .zero) }
        #expect(queue.waiting == sent.reduce(0) { $0 + $1.count + 2 })
        #expect(try datagrams(in: drain(&queue)) == sent)
        #expect(queue.isEmpty && queue.framesSent == 20)
    }

    @Test func `drops a picture whole, with what of it waits already`() throws {
        var queue = FrameQueue(limits)
        for number in 0..<6 as Range<UInt8> {
            queue.append(rtp(ssrc: video, timestamp: 1, size: 1_000, number: number).span, at: .zero)
        }
        for number in 6..<12 as Range<UInt8> {
            queue.append(rtp(ssrc: video, timestamp: 2, size: 1_000, number: number).span, at: .zero)
        }
        #expect(queue.drops == .init(video: 6))
        #expect(try datagrams(in: drain(&queue)).map { $0[3] } == Array(0..<6))
    }

    @Test func `leaves pictures out until it is nearly empty`() throws {
        var queue = FrameQueue(limits)
        for timestamp in 0..<15 as Range<UInt32> {
            queue.append(rtp(ssrc: video, timestamp: timestamp, size: 1_000).span, at: .zero)
        }
        #expect(queue.isShedding && queue.drops.video == 6)
        var left = drain(&queue, atMost: 5_000)
        queue.append(rtp(ssrc: video, timestamp: 20, size: 1_000, number: 1).span, at: .zero)
        left += drain(&queue, atMost: 3_000)
        // The rest of a picture whose beginning was dropped is of no use.
        queue.append(rtp(ssrc: video, timestamp: 20, size: 1_000, number: 2).span, at: .zero)
        #expect(queue.drops.video == 8)
        queue.append(rtp(ssrc: video, timestamp: 21, size: 50, number: 3).span, at: .zero)
        #expect(!queue.isShedding)
        left += drain(&queue)
        #expect(try datagrams(in: left).map { $0[7] } == Array(0..<9) + [21])
    }

    @Test func `keeps audio and control longer than video`() throws {
        var queue = FrameQueue(limits)
        for timestamp in 0..<15 as Range<UInt32> {
            queue.append(rtp(ssrc: video, timestamp: timestamp, size: 1_000).span, at: .zero)
            queue.append(rtp(ssrc: audio, timestamp: timestamp, size: 80).span, at: .zero)
            queue.append([0x80, 200, UInt8(timestamp), 0].span, at: .zero)
        }
        #expect(queue.drops.other == 0 && queue.drops.video > 0)
        let left = try datagrams(in: drain(&queue))
        #expect(left.count { $0.count == 80 } == 15)
        #expect(left.count { $0.count == 4 } == 15)
    }

    @Test func `takes nothing beyond its limit`() {
        var queue = FrameQueue(limits)
        for timestamp in 0..<1_000 as Range<UInt32> {
            queue.append(rtp(ssrc: video, timestamp: timestamp, size: 1_000).span, at: .zero)
            queue.append(rtp(ssrc: audio, timestamp: timestamp, size: 300).span, at: .zero)
        }
        #expect(queue.waiting <= limits.bytes)
        #expect(queue.drops.other > 0)
    }

    @Test func `takes less when all of them hold much`() {
        var queue = FrameQueue(limits)
        for timestamp in 0..<100 as Range<UInt32> {
            queue.append(rtp(ssrc: video, timestamp: timestamp, size: 500).span, isTight: true, at: .zero)
            queue.append(rtp(ssrc: audio, timestamp: timestamp, size: 100).span, isTight: true, at: .zero)
        }
        #expect(queue.waiting <= limits.resumeBytes * 2)
    }

    @Test func `stops taking video when the oldest is too old`() {
        var queue = FrameQueue(limits)
        queue.append(rtp(ssrc: video, timestamp: 1, size: 1_000).span, at: time(0))
        queue.append(rtp(ssrc: video, timestamp: 2, size: 1_000).span, at: time(1_000))
        queue.append(rtp(ssrc: video, timestamp: 3, size: 1_000).span, at: time(1_001))
        #expect(queue.drops.video == 1 && queue.isShedding)
    }

    @Test func `drops media that is too old, but nothing that has begun to leave`() throws {
        var queue = FrameQueue(limits)
        queue.append(rtp(ssrc: audio, timestamp: 1, size: 90, number: 1).span, at: time(0))
        queue.append(rtp(ssrc: audio, timestamp: 2, size: 90, number: 2).span, at: time(0))
        queue.append([0x80, 200, 0, 3].span, at: time(0))
        queue.append(rtp(ssrc: video, timestamp: 4, size: 900, number: 4).span, at: time(0))
        queue.append(rtp(ssrc: video, timestamp: 4, size: 900, number: 5).span, at: time(900))
        queue.append(rtp(ssrc: audio, timestamp: 5, size: 90, number: 6).span, at: time(900))
        var left = drain(&queue, atMost: 10)
        queue.expire(at: time(1_001))
        left += drain(&queue)
        #expect(try datagrams(in: left).map { $0[3] } == [1, 3, 6])
        #expect(queue.drops == .init(video: 2, other: 1))
    }

    /// Whatever comes and however slowly it leaves: whole frames, in order, and pictures without holes at their end.
    @Test(arguments: 0..<60 as Range<UInt64>) func `never cuts a frame`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        var queue = FrameQueue(limits)
        var stream: [UInt8] = []
        var now: Int64 = 0
        for step in 0..<400 {
            now += Int64.random(in: 0...40, using: &random)
            let timestamp = UInt32(step / 5)
            let datagram =
                Int.random(in: 0..<4, using: &random) == 0
                ? rtp(ssrc: audio, timestamp: UInt32(step), size: .random(in: 20...300, using: &random))
                : rtp(
                    ssrc: video, timestamp: timestamp, size: .random(in: 401...1_300, using: &random),
                    number: UInt8(step % 5))
            queue.append(datagram.span, at: time(now))
            #expect(queue.waiting <= limits.bytes)
            if Bool.random(using: &random) {
                if Bool.random(using: &random) { queue.expire(at: time(now)) }
                let room = Int.random(in: 1...1_500, using: &random)
                _ = queue.send { bytes in
                    stream += bytes.prefix(room)
                    return min(bytes.count, room)
                }
            }
        }
        stream += drain(&queue)
        let left = try datagrams(in: stream)
        #expect(UInt64(left.count) == queue.framesSent)
        #expect(UInt64(left.count) + queue.drops.video + queue.drops.other == 400)
        let times = left.filter { $0[11] == 7 }.map { $0[7] }
        #expect(times == times.sorted())
    }

    @Test func `tells a broken connection, and takes back nothing`() {
        var queue = FrameQueue()
        queue.append([1, 2, 3].span, at: .zero)
        #expect(queue.send { _ in -32 } == -32)
        #expect(queue.waiting == 5)
    }
}
