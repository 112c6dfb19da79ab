import Base
import Recordings
import Testing
import Wire

@testable import Transcoder

@Suite struct `The inputs of a recording` {
    private var studio = Studio()

    /// The length and the cause of the file's end.
    private var end: (milliseconds: UInt64, cause: RecordingReport.Cause)? {
        guard case .finished(let milliseconds, let cause)? = studio.reports.last else { return nil }
        return (milliseconds, cause)
    }

    private var beginnings: [RecordingReport] {
        studio.reports.filter { if case .began = $0 { true } else { false } }
    }

    /// A machine that expects sound alone.
    private mutating func expectSound() {
        studio.machine = RecordingMachine(RecordingRequest(expectsVideo: false, expectsAudio: true))
        studio.machine.open(studio.video)
        studio.machine.open(studio.audio)
    }

    private mutating func playSound(_ packets: Int) {
        for _ in 0..<packets {
            studio.sendSound()
            studio.now = studio.now + .milliseconds(20)
            studio.machine.advance(to: studio.now)
            studio.settle()
        }
    }

    @Test mutating func `make a file of sound alone once no picture came for a second`() {
        expectSound()
        playSound(49)
        #expect(studio.reports.isEmpty)
        playSound(101)
        studio.stop()
        #expect(beginnings == [.began(.webM, nil, nil, hasAudio: true)])
        // What came while a picture was waited for is in it.
        #expect(abs(studio.outline(studio.file).milliseconds - 3_000) < 100)
        #expect(end?.cause == .stopped && studio.wanted == 0)
    }

    @Test mutating func `end a file of sound alone where a picture comes`() {
        expectSound()
        playSound(100)
        let before = studio.isOver
        studio.play(2)
        #expect(!before && studio.isOver && end?.cause == .changed)
        #expect((1_900...2_200).contains(end?.milliseconds ?? 0))
    }

    @Test mutating func `are ignored once a newer one brings the same`() {
        studio.play(10)
        let old = studio.video
        studio.video = InputID(number: 3)
        studio.machine.open(studio.video)
        studio.frames = 0
        studio.play(5)
        // A picture of the older one that comes late.
        let (new, frames) = (studio.video, studio.frames)
        (studio.video, studio.frames) = (old, 900)
        studio.sendPicture(isKeyFrame: false)
        (studio.video, studio.frames) = (new, frames)
        studio.play(5)
        studio.stop()
        #expect(studio.wanted == 0 && beginnings.count == 1)
        #expect(end?.cause == .stopped && (1_850...2_150).contains(end?.milliseconds ?? 0))
    }

    @Test mutating func `are taken again once the newer one is closed`() {
        studio.play(10)
        let old = studio.video
        studio.video = InputID(number: 3)
        studio.machine.open(studio.video)
        studio.frames = 0
        studio.play(10)
        studio.machine.close(studio.video)
        (studio.video, studio.frames) = (old, 600)
        studio.play(10)
        studio.stop()
        #expect(end?.cause == .stopped && (2_850...3_150).contains(end?.milliseconds ?? 0))
        #expect(beginnings.count == 1)
    }

    @Test mutating func `bring nothing before they are opened, and after they are closed`() {
        studio.machine.close(studio.video)
        studio.machine.close(studio.audio)
        studio.play(60)
        #expect(studio.reports.isEmpty && studio.wanted == 0)
        studio.machine.open(studio.audio)
        studio.play(1)
        // The seconds before are not what was waited.
        #expect(studio.reports.isEmpty)
    }

    @Test mutating func `are asked for a key frame every two seconds while they bring none`() {
        for _ in 0..<150 {
            studio.sendPicture(isKeyFrame: false)
            studio.now = studio.now + .nanoseconds(33_333_333)
        }
        #expect(studio.wanted == 3)
        #expect(studio.reports.isEmpty)
    }
}

@Suite struct `The end of a recording` {
    private var studio = Studio()

    @Test mutating func `comes once, and nothing behind it`() {
        studio.play(10)
        studio.stop()
        let (reports, size) = (studio.reports, studio.file.count)
        studio.stop()
        studio.machine.finish(.changed, at: studio.now)
        studio.frames = 60
        studio.play(10)
        #expect(studio.reports == reports && studio.file.count == size)
        #expect(studio.isOver)
    }

    /// Nobody is there any more who would write it.
    @Test mutating func `is not told where it is abandoned`() {
        studio.play(10)
        let reports = studio.reports
        // A flush is due, and not settled yet.
        studio.now = studio.now + .seconds(1)
        studio.machine.advance(to: studio.now)
        studio.machine.abandon()
        studio.settle()
        studio.stop()
        studio.frames = 60
        studio.play(5)
        #expect(studio.reports == reports && !studio.isOver)
    }

    @Test mutating func `has what waited for the other track`() throws {
        studio.play(20)
        // Pictures alone wait for sound for 400 ms.
        for _ in 0..<10 {
            studio.sendPicture()
            studio.now = studio.now + .nanoseconds(33_333_333)
        }
        studio.stop()
        guard case .finished(let milliseconds, .stopped)? = studio.reports.last else {
            Issue.record("it did not end: \(studio.reports)")
            return
        }
        #expect((2_250...2_400).contains(milliseconds))
    }

    @Test mutating func `leaves out what has waited in vain for a key frame`() {
        studio.play(10)
        studio.sendPicture(isLost: true)
        studio.play(6)
        studio.stop()
        guard case .finished(let milliseconds, .stopped)? = studio.reports.last else {
            Issue.record("it did not end: \(studio.reports)")
            return
        }
        // The sound goes on.
        #expect((1_500...1_700).contains(milliseconds))
        #expect(studio.wanted == 1)
    }
}

@Suite struct `Pieces of a recording's file` {
    /// VP8 of 320x240, as large as encoders make it at the very most.
    @Test func `are no larger than a message takes, and have no gap between them`() {
        var machine = RecordingMachine(RecordingRequest(expectsVideo: true, expectsAudio: false))
        let input = InputID(number: 1)
        machine.open(input)
        let head: [UInt8] = [0x10, 0x10, 0, 0, 0x9D, 0x01, 0x2A, 0x40, 0x01, 0xF0, 0x00]
        let now = MonotonicTime(nanoseconds: 1_000_000_000)
        machine.take(
            InputPacket(
                sequenceNumber: 1, timestamp: 0, marker: true, codec: .vp8, isEntryPoint: true, arrival: now,
                captured: now, payload: head + [UInt8](repeating: 0x55, count: 900_000)),
            of: input, at: now)
        machine.finish(.stopped, at: now)
        var end: UInt64 = 0
        var largest = 0
        for action in machine.takeActions() {
            guard case .report(.bytes(let offset, let bytes)) = action else { continue }
            #expect(offset <= end)
            end = max(end, offset + UInt64(bytes.count))
            largest = max(largest, bytes.count)
        }
        #expect(end > 900_000)
        #expect(largest > 0 && largest <= RecordingReport.pieceLimit)
    }
}
