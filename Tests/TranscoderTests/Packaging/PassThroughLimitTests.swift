import Base
import TestSupport
import Testing
import Wire

@testable import Transcoder

@Suite struct `A burst of a publisher's pictures` {
    /// A part goes to the server as one message: one that is too long would end the process, and everybody's jobs.
    @Test func `makes no part that is longer than a message`() throws {
        let rig = PassRig()
        // Bytes behind four pictures, which decoders leave alone: 5.6 MB in a seventh of a second.
        let filler = [0, 0, 0, 1, 0x0C] + [UInt8](repeating: 0xFF, count: 1_400_000) + [0x80]
        let frames = try SampleVideo.frames(.h264, width: 320, height: 180, count: 105, group: 40)
        try rig.play(frames.enumerated().map { (62..<66).contains($0) ? $1 + filler : $1 })
        #expect(rig.beginnings.map(\.framesPerSecond) == [nil, 30])
        #expect(!rig.packager.hasFailed)
        for report in rig.reports {
            var bytes: [UInt8] = []
            TranscoderReport.job(JobID(number: 1), report.bytes).append(to: &bytes)
            var assembler = MessageAssembler()
            var count = 0
            try assembler.receive(bytes) { _, _ in count += 1 }
            #expect(count == 1)
        }
    }
}

@Suite struct `Parameter sets of H.264 that are passed on` {
    private static let sets: [[UInt8]] = [
        [0x67, 0x42, 0xC0, 0x0D, 0xDA, 0x05, 0x07, 0xC4], [0x68, 0xCE, 0x3C, 0x80],
    ]
    private var passed = PassThrough(.h264)
    private var number: Int64 = 0
    private var now = MonotonicTime(nanoseconds: 5_000_000_000)

    /// Sends a picture, 33 ms after the last one.
    private mutating func send(
        _ slice: UInt8, withSets: Bool = false, behind own: [[UInt8]] = [], epoch: UInt32 = 0
    ) -> [PassedFrame] {
        now = now + .milliseconds(33)
        let units = (withSets ? Self.sets : own) + [[slice, 0x88, UInt8(truncatingIfNeeded: number)]]
        let time = UInt32(truncatingIfNeeded: now.nanoseconds / 1_000_000 * 90)
        for (place, unit) in units.enumerated() {
            passed.receive(
                InputPacket(
                    sequenceNumber: number, timestamp: time, marker: place == units.count - 1, codec: .h264,
                    isEntryPoint: [0x67, 0x65].contains(unit[0]), epoch: epoch, arrival: now, captured: now,
                    payload: unit), at: now)
            number += 1
        }
        return passed.takeFrames()
    }

    /// Their packet is as easily lost as any other, and another key frame brings them again.
    @Test mutating func `are asked for where a publisher's first ones are lost`() {
        let first = send(0x65) + send(0x41) + send(0x41)
        let wish = passed.takeKeyFrameWish(at: now)
        #expect(first.isEmpty && wish && !passed.isUnfit)
        let begun = send(0x65, withSets: true) + send(0x41)
        now = now + .seconds(1)
        let again = passed.takeKeyFrameWish(at: now)
        #expect(begun.map(\.isKeyFrame) == [true, false] && !again)
        #expect(begun.first?.video?.resolution == VideoResolution(width: 320, height: 240))
    }

    @Test mutating func `apply to later key frames that come without them`() {
        let first = send(0x65, withSets: true)
        let second = send(0x65)
        #expect(first.first?.video != nil && second.first?.video == first.first?.video)
        #expect(!passed.isUnfit)
    }

    @Test mutating func `apply to later key frames that repeat the picture parameter set alone`() {
        let first = send(0x65, withSets: true)
        let second = send(0x65, behind: [Self.sets[1]])
        #expect(first.first?.video != nil && second.first?.video == first.first?.video)
    }

    @Test mutating func `do not apply to another source`() {
        _ = send(0x65, withSets: true)
        let other = send(0x65, epoch: 1) + send(0x41, epoch: 1)
        #expect(other.isEmpty && !passed.isUnfit)
        let begun = send(0x65, withSets: true, epoch: 1)
        #expect(begun.map(\.isKeyFrame) == [true])
    }
}
