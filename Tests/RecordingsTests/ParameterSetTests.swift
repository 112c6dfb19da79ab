import Base
import Testing
import Wire

@testable import Recordings
@testable import Transcoder

@Suite struct `A recording of H.264` {
    /// Of 320x240.
    private static let sets: [[UInt8]] = [
        [0x67, 0x42, 0xC0, 0x0D, 0xDA, 0x05, 0x07, 0xC4], [0x68, 0xCE, 0x3C, 0x80],
    ]
    private var studio = Studio()
    private var packets: Int64 = 0
    private var pictures: UInt32 = 0

    /// Sends a picture whose units are packets of their own, and sound: five packets with three pictures.
    private mutating func send(_ slice: UInt8, behind sets: [[UInt8]] = []) {
        let units = sets + [[slice, 0x88, UInt8(truncatingIfNeeded: pictures)]]
        for (place, unit) in units.enumerated() {
            let packet = InputPacket(
                sequenceNumber: packets, timestamp: pictures * 3_000, marker: place == units.count - 1,
                codec: .h264, isEntryPoint: [0x67, 0x65].contains(unit[0]), arrival: studio.now,
                captured: studio.now - .milliseconds(40), payload: unit)
            studio.machine.take(packet, of: studio.video, at: studio.now)
            packets += 1
        }
        for _ in 0..<(pictures % 3 == 0 ? 1 : 2) { studio.sendSound() }
        pictures += 1
        studio.now = studio.now + .nanoseconds(33_333_333)
        studio.machine.advance(to: studio.now)
        studio.settle()
    }

    private var beginnings: [RecordingReport] {
        studio.reports.filter { if case .began = $0 { true } else { false } }
    }

    /// Browsers send key frames on request alone: without one there would be no picture for minutes.
    @Test mutating func `asks for a key frame where the packet with the parameter sets was lost`() throws {
        send(0x65)
        for _ in 0..<10 { send(0x41) }
        #expect(studio.wanted == 1 && studio.reports.isEmpty)
        send(0x65, behind: Self.sets)
        for _ in 0..<59 { send(0x41) }
        studio.stop()
        let size = VideoResolution(width: 320, height: 240)
        #expect(beginnings == [.began(.mp4, .h264, size, hasAudio: true)])
        guard case .finished(let milliseconds, .stopped)? = studio.reports.last else {
            Issue.record("it did not end: \(studio.reports)")
            return
        }
        // What refers to the key frame without parameter sets is not in the file.
        #expect((1_950...2_100).contains(milliseconds))
    }

    @Test mutating func `is one file although its encoder sends parameter sets once only`() throws {
        for index in 0..<120 { send(index % 30 == 0 ? 0x65 : 0x41, behind: index == 0 ? Self.sets : []) }
        studio.stop()
        #expect(beginnings.count == 1)
        guard case .finished(let milliseconds, .stopped)? = studio.reports.last else {
            Issue.record("it did not end: \(studio.reports)")
            return
        }
        #expect((3_950...4_100).contains(milliseconds))
    }

    @Test mutating func `is one file although its encoder repeats the picture parameter set alone`() throws {
        for index in 0..<120 {
            let sets = index == 0 ? Self.sets : index % 30 == 0 ? [Self.sets[1]] : []
            send(index % 30 == 0 ? 0x65 : 0x41, behind: sets)
        }
        studio.stop()
        #expect(beginnings.count == 1)
        guard case .finished(let milliseconds, .stopped)? = studio.reports.last else {
            Issue.record("it did not end: \(studio.reports)")
            return
        }
        #expect((3_950...4_100).contains(milliseconds))
    }

    @Test mutating func `is continued in another file where the parameter sets change`() throws {
        send(0x65, behind: Self.sets)
        for _ in 0..<40 { send(0x41) }
        send(0x65, behind: [Self.sets[0], [0x68, 0xCE, 0x38, 0x80]])
        for _ in 0..<30 { send(0x41) }
        guard case .finished(_, .changed)? = studio.reports.last else {
            Issue.record("it goes on: \(studio.reports)")
            return
        }
    }
}
