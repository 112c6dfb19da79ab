import Base
import TestSupport
import Testing
import Transcoder
import Wire

@Suite struct `A message` {
    static let requests: [TranscoderRequest] = [
        .hello(version: 1), .begin(JobID(number: 1), .preview, [1, 2, 3]),
        .command(JobID(number: 2), []), .end(JobID(number: .max)),
        .open(InputID(number: 3), for: JobID(number: 1), from: SourceKey(number: 9), .av1),
        .packet(
            InputID(number: 3),
            InputPacket(
                sequenceNumber: -5, timestamp: .max, marker: true, codec: .opus, isEntryPoint: true, epoch: 7,
                arrival: MonotonicTime(nanoseconds: 12), captured: MonotonicTime(nanoseconds: -1),
                audioLevel: 33, orientation: 2, payload: [9, 8])),
        .packet(
            InputID(number: 3),
            InputPacket(
                sequenceNumber: 0, timestamp: 0, marker: false, codec: .vp8, isEntryPoint: false,
                arrival: .zero)),
        .close(InputID(number: 3)),
    ]
    static let reports: [TranscoderReport] = [
        .hello(version: 1), .job(JobID(number: 4), [UInt8](repeating: 7, count: 100_000)),
        .packet(
            JobID(number: 4),
            OutputPacket(source: 1, layer: 2, captured: MonotonicTime(nanoseconds: 5), bytes: [0x80, 1])),
        .keyFrameWanted(InputID(number: 8)), .ended(JobID(number: 4)),
        .load(TranscoderLoad(cpuNanoseconds: 17, residentBytes: 18)),
        .log(.warning, event: "an.event", text: "told"),
    ]

    /// In pieces of whatever size, as the socket brings them.
    private func receive(_ bytes: [UInt8], pieces: Int) throws -> [(UInt8, MessageReader)] {
        var assembler = MessageAssembler()
        var messages: [(UInt8, MessageReader)] = []
        var place = 0
        while place < bytes.count {
            let end = min(place + pieces, bytes.count)
            try assembler.receive(bytes[place..<end]) { messages.append(($0, $1)) }
            place = end
        }
        return messages
    }

    @Test(arguments: [1, 7, 1_000, 1 << 20]) func `arrives as it was sent`(_ pieces: Int) throws {
        var bytes: [UInt8] = []
        for request in Self.requests { request.append(to: &bytes) }
        #expect(try receive(bytes, pieces: pieces).map { try TranscoderRequest($0.0, $0.1) } == Self.requests)
        bytes = []
        for report in Self.reports { report.append(to: &bytes) }
        guard pieces > 1 else { return }
        #expect(try receive(bytes, pieces: pieces).map { try TranscoderReport($0.0, $0.1) } == Self.reports)
    }

    @Test func `is refused when it is empty or too long`() {
        for length in [[0, 0, 0, 0], [0xFF, 0xFF, 0xFF, 0xFF]] as [[UInt8]] {
            #expect(throws: WireError.self) { try receive(length, pieces: 4) }
        }
    }

    @Test(arguments: 0..<20) func `of a stranger does no harm`(_ seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        for request in Self.requests {
            var bytes: [UInt8] = []
            request.append(to: &bytes)
            for _ in 0..<50 {
                var broken = bytes
                let place = Int.random(in: 4..<broken.count, using: &random)
                broken[place] = UInt8.random(in: 0...255, using: &random)
                let body = MessageReader(Array(broken[5...].prefix(Int.random(in: 0...60, using: &random))))
                _ = try? TranscoderRequest(broken[4], body)
                _ = try? TranscoderReport(broken[4], body)
                _ = try? PreviewRequest(Array(broken[5...]))
                _ = try? PreviewPicture.read(Array(broken[5...]))
            }
        }
    }

    @Test func `of a preview says what it said`() throws {
        let request = PreviewRequest(
            source: SourceKey(number: 5), codec: .h264, orientation: 1, payloads: [[1, 2], [], [3]])
        #expect(try PreviewRequest(request.bytes) == request)
    }
}
