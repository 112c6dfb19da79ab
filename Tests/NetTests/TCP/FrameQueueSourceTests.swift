import Base
import Testing
import Wire

@testable import Net

/// What two publishers' pictures do to each other in one queue.
@Suite struct `A frame queue with several sources` {
    private let first: UInt32 = 7
    private let second: UInt32 = 9
    private let voice: UInt32 = 8

    private func time(_ milliseconds: Int64) -> MonotonicTime { .zero + .milliseconds(milliseconds) }

    /// Which packets leave: the last byte of each one's SSRC, and its number.
    private func drain(_ queue: inout FrameQueue) throws -> [[UInt8]] {
        var stream: [UInt8] = []
        while !queue.isEmpty {
            _ = queue.send { bytes in
                stream += bytes
                return bytes.count
            }
        }
        var reader = FrameReader()
        var found: [[UInt8]] = []
        try reader.read(stream[...]) { found.append([$0[11], $0[3]]) }
        return found
    }

    private func append(
        _ ssrc: UInt32, _ timestamp: UInt32, number: UInt8, size: Int = 900, at milliseconds: Int64,
        to queue: inout FrameQueue
    ) {
        let packet = rtp(ssrc: ssrc, timestamp: timestamp, size: size, number: number)
        queue.append(packet.span, at: time(milliseconds))
    }

    @Test func `leaves out the rest of each picture whose beginning was too old`() throws {
        var queue = FrameQueue()
        append(first, 1, number: 1, at: 0, to: &queue)
        append(second, 1, number: 1, at: 0, to: &queue)
        append(first, 1, number: 2, at: 0, to: &queue)
        append(second, 1, number: 2, at: 0, to: &queue)
        queue.expire(at: time(1_001))
        #expect(queue.drops == .init(video: 4) && queue.isEmpty)
        for number in 3...4 as ClosedRange<UInt8> {
            append(first, 1, number: number, at: 1_001, to: &queue)
            append(second, 1, number: number, at: 1_001, to: &queue)
        }
        #expect(queue.drops == .init(video: 8) && queue.isEmpty)
        append(first, 2, number: 5, at: 1_001, to: &queue)
        append(second, 2, number: 5, at: 1_001, to: &queue)
        #expect(try drain(&queue) == [[7, 5], [9, 5]])
    }

    @Test func `leaves out the rest of the latest picture of a source, where several were too old`() throws {
        var queue = FrameQueue()
        for timestamp in 1...3 as ClosedRange<UInt32> {
            append(first, timestamp, number: UInt8(timestamp), at: 0, to: &queue)
            append(second, timestamp, number: UInt8(timestamp), at: 0, to: &queue)
        }
        queue.expire(at: time(1_001))
        append(second, 3, number: 4, at: 1_001, to: &queue)
        append(first, 3, number: 4, at: 1_001, to: &queue)
        append(second, 4, number: 5, at: 1_001, to: &queue)
        append(first, 4, number: 5, at: 1_001, to: &queue)
        #expect(queue.drops == .init(video: 8))
        #expect(try drain(&queue) == [[9, 5], [7, 5]])
    }

    @Test func `remembers a picture that was left out at once, although older ones go after it`() throws {
        var queue = FrameQueue()
        append(second, 1, number: 1, at: 0, to: &queue)
        append(first, 1, number: 1, at: 0, to: &queue)
        append(second, 2, number: 2, at: 1_001, to: &queue)
        #expect(queue.drops == .init(video: 1))
        queue.expire(at: time(1_001))
        append(second, 2, number: 3, at: 1_001, to: &queue)
        #expect(queue.drops == .init(video: 4) && queue.isEmpty)
        append(second, 3, number: 4, at: 1_001, to: &queue)
        #expect(try drain(&queue) == [[9, 4]])
    }

    @Test func `keeps the sound of a picture that was left out, and what is new`() throws {
        var queue = FrameQueue()
        append(first, 1, number: 1, at: 0, to: &queue)
        append(voice, 1, number: 1, size: 90, at: 0, to: &queue)
        append(voice, 2, number: 2, size: 90, at: 500, to: &queue)
        append(second, 5, number: 3, at: 900, to: &queue)
        queue.expire(at: time(1_001))
        #expect(queue.drops == .init(video: 1, other: 1))
        #expect(try drain(&queue) == [[8, 2], [9, 3]])
    }

    @Test func `drops nothing that is as old as it may be, and nothing twice`() throws {
        var queue = FrameQueue()
        append(first, 1, number: 1, at: 0, to: &queue)
        append(voice, 1, number: 1, size: 90, at: 1, to: &queue)
        queue.expire(at: time(1_000))
        #expect(queue.drops == .init() && !queue.isShedding)
        queue.expire(at: time(1_001))
        queue.expire(at: time(1_001))
        #expect(queue.drops == .init(video: 1))
        #expect(try drain(&queue) == [[8, 1]])
    }

    @Test func `takes a source for video from its first large packet on, its small ones too`() throws {
        var limits = FrameQueue.Limits()
        (limits.videoBytes, limits.bytes, limits.resumeBytes) = (2_000, 4_000, 500)
        var queue = FrameQueue(limits)
        // Of the same size, but of a source that has sent nothing larger.
        append(voice, 1, number: 1, size: 400, at: 0, to: &queue)
        append(first, 1, number: 1, size: 401, at: 0, to: &queue)
        for number in 2...6 as ClosedRange<UInt8> {
            append(voice, UInt32(number), number: number, size: 400, at: 0, to: &queue)
        }
        #expect(queue.waiting > limits.videoBytes)
        append(first, 2, number: 9, size: 20, at: 0, to: &queue)
        #expect(queue.drops == .init(video: 1) && queue.isShedding)
        append(voice, 7, number: 7, size: 20, at: 0, to: &queue)
        #expect(queue.drops == .init(video: 1))
    }

    /// Someone who swipes through streams for an hour meets hundreds.
    @Test func `takes a new source for video although many came before it`() throws {
        var limits = FrameQueue.Limits()
        (limits.videoBytes, limits.bytes, limits.resumeBytes) = (2_000, 4_000, 500)
        var queue = FrameQueue(limits)
        for number in 0..<64 as Range<UInt32> {
            append(100 + number, 1, number: UInt8(number), at: Int64(number), to: &queue)
            _ = try drain(&queue)
        }
        // The first of them is still there.
        append(100, 2, number: 64, size: 20, at: 64, to: &queue)
        _ = try drain(&queue)
        for number in 1...3 as ClosedRange<UInt8> { append(first, 1, number: number, at: 65, to: &queue) }
        #expect(queue.drops == .init(video: 3) && queue.isShedding)
        for number in 1...6 as ClosedRange<UInt8> {
            append(voice, UInt32(number), number: number, size: 400, at: 66, to: &queue)
        }
        // The second one has been silent for the longest time.
        append(100, 3, number: 65, size: 20, at: 66, to: &queue)
        #expect(queue.drops == .init(video: 4))
        append(101, 2, number: 66, size: 20, at: 66, to: &queue)
        #expect(queue.drops == .init(video: 4))
    }

    @Test func `takes a picture whole again although another source's was left out`() throws {
        var limits = FrameQueue.Limits()
        (limits.videoBytes, limits.bytes, limits.resumeBytes) = (3_000, 4_000, 500)
        var queue = FrameQueue(limits)
        append(first, 1, number: 1, at: 0, to: &queue)
        append(second, 1, number: 1, at: 0, to: &queue)
        append(first, 1, number: 2, at: 0, to: &queue)
        // One too many: all of the first source's picture goes, and nothing of the second's.
        append(first, 1, number: 3, at: 0, to: &queue)
        #expect(queue.drops == .init(video: 3))
        // The second source's picture is left out from here on, since nothing has left yet.
        append(second, 1, number: 2, at: 0, to: &queue)
        #expect(queue.drops == .init(video: 4))
        #expect(try drain(&queue) == [[9, 1]])
        append(second, 1, number: 3, at: 1, to: &queue)
        append(first, 1, number: 4, at: 1, to: &queue)
        #expect(queue.drops == .init(video: 6) && queue.isShedding)
        append(second, 2, number: 4, at: 1, to: &queue)
        append(first, 2, number: 5, at: 1, to: &queue)
        #expect(try drain(&queue) == [[9, 4], [7, 5]])
        #expect(queue.framesSent == 3)
    }

    @Test func `counts bytes of what was dropped after it had begun to leave as sent`() throws {
        var queue = FrameQueue()
        append(first, 1, number: 1, size: 500, at: 0, to: &queue)
        append(first, 2, number: 2, size: 500, at: 0, to: &queue)
        var stream: [UInt8] = []
        _ = queue.send { bytes in
            stream += bytes.prefix(100)
            return 100
        }
        queue.expire(at: time(1_001))
        #expect(queue.drops == .init(video: 1) && queue.waiting == 402)
        #expect(queue.bytesSent == 100 && queue.framesSent == 0)
        _ = queue.send { bytes in
            stream += bytes
            return bytes.count
        }
        #expect(queue.bytesSent == 502 && queue.framesSent == 1 && queue.isEmpty)
        let left = rtp(ssrc: first, timestamp: 1, size: 500, number: 1)
        #expect(Array(stream.dropFirst(2)) == left)
    }
}
