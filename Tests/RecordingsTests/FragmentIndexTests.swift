import Base
import Foundation
import TestSupport
import Testing
import Wire

@testable import Recordings
@testable import Transcoder

/// So many tenths of a second of H.264 and Opus, with a key frame every two seconds.
private func grown(_ tenths: Int) -> [UInt8] {
    var studio = Studio()
    studio.codec = .h264
    studio.play(tenths)
    studio.stop()
    return studio.file
}

/// The same, once it is complete: with tables, and fragments that are marked as free.
private func completed(_ bytes: [UInt8]) throws -> [UInt8] {
    let path = FileManager.default.temporaryDirectory.appendingPathComponent("\(UUID()).mp4").path
    defer { try? FileManager.default.removeItem(atPath: path) }
    try Data(bytes).write(to: URL(fileURLWithPath: path))
    try #require(RecordingRepair.repair(path, "mp4") != nil)
    return try #require(FileManager.default.contents(atPath: path).map { Array($0) })
}

private func box(_ type: String, size: UInt32, _ body: [UInt8] = []) -> [UInt8] {
    [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: size >> UInt32($0)) } + Array(type.utf8) + body
}

@Suite struct `The fragments of a recording` {
    @Test func `are found again in a file that is complete`() throws {
        let raw = grown(130)
        let done = try completed(raw)
        let (before, after) = (
            try #require(FragmentIndex(ByteSource(raw))), try #require(FragmentIndex(ByteSource(done)))
        )
        #expect(after == before)
        #expect(after.segments.count == 4)
        // Its bytes are those of the file before, wherever they are read.
        var whole = Array(done.prefix(Int(after.size)))
        #expect(whole != Array(raw.prefix(Int(after.size))))
        after.restore(&whole, from: 0)
        #expect(whole == Array(raw.prefix(Int(after.size))))
        for length in [1, 3, 7, 1_000, 4_096] {
            var pieces: [UInt8] = []
            while pieces.count < whole.count {
                var piece = Array(done[pieces.count..<min(pieces.count + length, whole.count)])
                after.restore(&piece, from: Int64(pieces.count))
                pieces += piece
            }
            #expect(pieces == whole, "\(length) bytes at a time")
        }
    }

    @Test func `are put together from one key frame to a later one`() throws {
        let index = try #require(FragmentIndex(ByteSource(grown(130))))
        #expect(index.segments.map(\.isIndependent) == [true, true, true, true])
        #expect(index.segments.dropLast().allSatisfy { abs($0.milliseconds - 4_000) < 60 })
        let length = index.segments.reduce(0) { $0 + $1.milliseconds }
        #expect((12_900...13_100).contains(length))
        #expect(index.initialization.lowerBound == 0)
        var end = index.initialization.upperBound
        for segment in index.segments {
            #expect(segment.bytes.lowerBound == end && !segment.bytes.isEmpty)
            end = segment.bytes.upperBound
        }
    }

    /// A browser sends a key frame when it is asked for one.
    @Test func `end somewhere, where key frames are rare`() throws {
        var studio = Studio()
        studio.codec = .h264
        for index in 0..<300 {
            for _ in 0..<3 { studio.sendPicture(isKeyFrame: index == 0) }
            for _ in 0..<5 { studio.sendSound() }
            studio.now = studio.now + .milliseconds(100)
            studio.machine.advance(to: studio.now)
            studio.settle()
        }
        studio.stop()
        let index = try #require(FragmentIndex(ByteSource(studio.file)))
        #expect(index.segments.count == 3)
        #expect(index.segments.map(\.isIndependent) == [true, false, false])
        #expect(index.segments.allSatisfy { $0.milliseconds < 13_000 })
    }

    @Test func `of which some are missing are those that are there`() throws {
        let raw = grown(130)
        let whole = try #require(FragmentIndex(ByteSource(raw)))
        for length in stride(from: 0, to: raw.count, by: 1_009) {
            guard let index = FragmentIndex(ByteSource(Array(raw.prefix(length)))) else {
                #expect(length < 20_000)
                continue
            }
            #expect(index.size <= length)
            #expect(Array(whole.segments.prefix(index.segments.count - 1)) == index.segments.dropLast())
        }
    }

    @Test func `are not looked for where there are none`() throws {
        let seeds = try PacketCapture("Recordings/recordings.hex").packets
        #expect(FragmentIndex(ByteSource(seeds[0])) != nil)
        // With tables and without fragments; then WebM.
        for seed in seeds.dropFirst() { #expect(FragmentIndex(ByteSource(seed)) == nil) }
        #expect(FragmentIndex(ByteSource([])) == nil)
    }

    @Test(arguments: [
        // To the end of the file, with a size that is missing, of 2^63, and shorter than its header.
        box("moov", size: 0), box("moov", size: 1), box("moov", size: 1, [0x80, 0, 0, 0, 0, 0, 0, 0]),
        box("moov", size: 7), box("free", size: 8), box("moof", size: 8) + box("mdat", size: 8),
        box("moov", size: .max), box("moov", size: 1, [0x7F] + [UInt8](repeating: 0xFF, count: 7)),
    ])
    func `do not come of boxes that cannot be`(bytes: [UInt8]) throws {
        #expect(FragmentIndex(ByteSource(bytes)) == nil)
        // Behind what can be, that is all there is.
        let raw = grown(20)
        let whole = try #require(FragmentIndex(ByteSource(raw)))
        let cut = Array(raw.prefix(Int(whole.size)))
        #expect(FragmentIndex(ByteSource(cut + bytes)) == whole)
    }
}
