import Foundation
import TestSupport
import Testing
import Wire

@testable import Recordings
@testable import Transcoder

/// A file of its own, gone with the test.
private struct Scratch: ~Copyable {
    let path = FileManager.default.temporaryDirectory.appendingPathComponent("\(UUID()).mp4").path

    init(_ bytes: [UInt8]) throws {
        try Data(bytes).write(to: URL(fileURLWithPath: path))
    }

    deinit {
        try? FileManager.default.removeItem(atPath: path)
    }

    var bytes: [UInt8] { FileManager.default.contents(atPath: path).map { Array($0) } ?? [] }

    /// What ffprobe says of the file, and of each packet: its track, when and how long it is shown, its bytes.
    func probe() throws -> (duration: Double?, complaints: String, packets: [String]) {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/ffprobe")
        process.arguments = [
            "-v", "error", "-show_entries",
            "packet=stream_index,pts_time,dts_time,size,data_hash,flags:format=duration",
            "-show_data_hash", "md5", "-of", "compact", path,
        ]
        let (output, errors) = (Pipe(), Pipe())
        process.standardOutput = output
        process.standardError = errors
        try process.run()
        let lines = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
            .split(separator: "\n").map(String.init)
        // The pictures are none, but for their heads: their decoder may say what it likes.
        let complaints = String(decoding: errors.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
            .split(separator: "\n").filter { $0.contains("mov,mp4") }.joined(separator: "\n")
        process.waitUntilExit()
        let duration = lines.first { $0.hasPrefix("format|") }.flatMap { Double($0.split(separator: "=")[1]) }
        return (duration, complaints, lines.filter { $0.hasPrefix("packet|") }.sorted())
    }
}

/// Five seconds of H.264 and Opus as the muxer leaves them, or as they lie there when nobody ends the file.
private func fragments(isCutOff: Bool = false) -> [UInt8] {
    var studio = Studio()
    studio.codec = .h264
    studio.play(50)
    if !isCutOff { studio.stop() }
    return studio.file
}

/// Big-endian numbers of 32 bits; the first one of a full box is its version and flags.
private func numbers(_ values: Int...) -> [UInt8] {
    values.flatMap { value in
        [24, 16, 8, 0].map { shift in UInt8(truncatingIfNeeded: value >> shift) }
    }
}

private func box(_ type: String, _ body: [UInt8]) -> [UInt8] {
    numbers(body.count + 8) + Array(type.utf8) + body
}

@Suite struct `An MP4 file that is complete` {
    @Test func `has the frames it had, and says how long it is`() throws {
        let before = try Scratch(fragments())
        let after = try Scratch(before.bytes)
        let length = try #require(RecordingRepair.repair(after.path, "mp4"))
        #expect(length.size == after.bytes.count)
        let (old, new) = (try before.probe(), try after.probe())
        #expect(new.complaints == "")
        #expect(new.packets == old.packets)
        #expect(new.packets.count > 350)
        let seconds = Double(length.milliseconds) / 1_000
        #expect(abs(try #require(new.duration) - seconds) < 0.05)
        #expect((4.9...5.1).contains(seconds))
    }

    @Test func `begins each track when it began`() throws {
        var bytes = fragments()
        let source = ByteSource(bytes)
        // The second track as if it had come 300 ms later: each of its fragments says when it begins.
        for moof in MP4Fragments(source).moofs {
            let trafs = MP4Boxes(in: source, from: moof.bodyStart, to: moof.end).filter { $0.type == "traf" }
            guard let traf = trafs.dropFirst().first else { continue }
            let boxes = MP4Boxes(in: source, from: traf.bodyStart, to: traf.end)
            let tfdt = try #require(boxes.first { $0.type == "tfdt" })
            let time = MP4BoxBody(of: tfdt, source).versionedNumber(at: 4) + 300 * 48
            // Big-endian, at the end of the box.
            for index in 0..<4 {
                bytes[Int(tfdt.end) - 1 - index] = UInt8(truncatingIfNeeded: time >> (8 * index))
            }
        }
        let before = try Scratch(bytes)
        let after = try Scratch(bytes)
        #expect(RecordingRepair.repair(after.path, "mp4") != nil)
        let (old, new) = (try before.probe(), try after.probe())
        #expect(new.packets == old.packets && new.complaints == "")
        #expect(new.packets.contains { $0.contains("stream_index=1|pts_time=0.300000") })
        #expect(abs(try #require(new.duration) - 5.3) < 0.1)
    }

    @Test func `stays as it is when it is completed again`() throws {
        let file = try Scratch(fragments())
        let length = try #require(RecordingRepair.repair(file.path, "mp4"))
        let bytes = file.bytes
        let again = try #require(RecordingRepair.repair(file.path, "mp4"))
        #expect(file.bytes == bytes)
        #expect(again.size == length.size)
        #expect(abs(again.milliseconds - length.milliseconds) <= 1)
    }

    @Test func `comes of every state in which its making may be interrupted`() throws {
        let raw = fragments()
        let whole = try Scratch(raw)
        try #require(RecordingRepair.repair(whole.path, "mp4") != nil)
        let done = whole.bytes
        let gathered = MP4Fragments(ByteSource(raw))
        let moov = try #require(gathered.moov).box
        #expect(gathered.moofs.count > 5)
        var states: [[UInt8]] = []
        // The tables are partly there, and nothing is marked.
        for share in 0...4 {
            let end = Int(gathered.end) + (done.count - Int(gathered.end)) * share / 4
            states.append(Array(raw[..<Int(gathered.end)] + done[Int(gathered.end)..<end]))
        }
        // The old tables are gone, and some of the fragments' own.
        var state = states[4]
        state.replaceSubrange(Int(moov.start + 4)..<Int(moov.start + 8), with: Array("free".utf8))
        states.append(state)
        for moof in gathered.moofs.prefix(3) {
            state.replaceSubrange(Int(moof.start + 4)..<Int(moof.start + 8), with: Array("free".utf8))
        }
        states.append(state)
        for (index, state) in states.enumerated() {
            let file = try Scratch(state)
            #expect(RecordingRepair.repair(file.path, "mp4") != nil)
            #expect(file.bytes == done, "state \(index)")
        }
    }

    @Test func `comes of what a crash leaves`() throws {
        let raw = fragments(isCutOff: true)
        for cut in stride(from: raw.count, to: raw.count / 3, by: -raw.count / 9) {
            let file = try Scratch(Array(raw[..<cut]))
            let length = try #require(RecordingRepair.repair(file.path, "mp4"))
            let found = try file.probe()
            #expect(found.complaints == "" && found.packets.count > 80)
            #expect(abs(try #require(found.duration) - Double(length.milliseconds) / 1_000) < 0.05)
        }
    }

    /// With tables that end too early, players would end there, too.
    @Test func `stays in fragments where a track has more frames than tables are made for`() throws {
        let raw = fragments()
        let gathered = MP4Fragments(ByteSource(raw))
        let track = try #require(gathered.tracks.keys.min())
        // 50 times 100,000 frames of one tick and no bytes, beside those that are there.
        let header = box("tfhd", numbers(0x38, Int(track), 1, 0, 0x1_0000))
        let runs = [[UInt8]](repeating: box("trun", numbers(0, 100_000)), count: 50)
        let traf = box("traf", header + box("tfdt", numbers(0, 450_000)) + Array(runs.joined()))
        let file = try Scratch(Array(raw.prefix(Int(gathered.end))) + box("moof", traf) + box("mdat", []))
        let bytes = file.bytes
        let length = try #require(RecordingRepair.repair(file.path, "mp4"))
        // Without their bytes in the complaint, which may be millions.
        let isSame = file.bytes == bytes
        #expect(isSame)
        #expect(length.size == bytes.count)
    }

    @Test func `of nothing stays empty`() throws {
        for count in [0, 1, 100] {
            let file = try Scratch(Array(fragments(isCutOff: true).prefix(count)))
            #expect(RecordingRepair.repair(file.path, "mp4") != nil)
        }
    }

    @Test func `does no harm when its bytes are wrong`() throws {
        let raw = fragments()
        var random = SeededGenerator(seed: 11)
        for _ in 0..<300 {
            var bytes = raw
            for _ in 0..<Int.random(in: 1...12, using: &random) {
                // Mostly where the structure is.
                let limit = Bool.random(using: &random) ? 1_500 : bytes.count
                bytes[Int.random(in: 0..<limit, using: &random)] = .random(in: .min ... .max, using: &random)
            }
            let gathered = MP4Fragments(ByteSource(bytes))
            #expect((0...Int64(bytes.count)).contains(gathered.end))
            for track in gathered.tracks.values {
                #expect(track.chunks.reduce(0) { $0 + Int($1.count) } == track.sizes.count)
            }
            if let tables = MP4Completion.tables(gathered) { #expect(tables.count < 1 << 26) }
        }
    }
}
