import Base
import TestSupport
import Testing
import Wire

@testable import Transcoder

/// A body, and what is read from others in its place.
struct MessageBody: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let bytes: [UInt8]
    /// What it says, in words.
    let text: String
    /// Nil for bytes that are refused.
    let read: @Sendable ([UInt8]) -> String?
}

private func bodies(ofRequests requests: [TranscoderRequest]) -> [MessageBody] {
    requests.enumerated().map { index, request in
        var bytes: [UInt8] = []
        request.append(to: &bytes)
        let kind = bytes[4]
        let name = "request \(index)"
        return MessageBody(testDescription: name, bytes: Array(bytes[5...]), text: "\(request)") { body in
            (try? TranscoderRequest(kind, MessageReader(body))).map { "\($0)" }
        }
    }
}

private func bodies(ofReports reports: [TranscoderReport]) -> [MessageBody] {
    reports.enumerated().map { index, report in
        var bytes: [UInt8] = []
        report.append(to: &bytes)
        let kind = bytes[4]
        let name = "report \(index)"
        return MessageBody(testDescription: name, bytes: Array(bytes[5...]), text: "\(report)") { body in
            (try? TranscoderReport(kind, MessageReader(body))).map { "\($0)" }
        }
    }
}

private func bodies(ofRecordings reports: [RecordingReport]) -> [MessageBody] {
    reports.enumerated().map { index, report in
        MessageBody(testDescription: "recording \(index)", bytes: report.bytes, text: "\(report)") { body in
            (try? RecordingReport(body)).map { "\($0)" }
        }
    }
}

private func bodies(ofClips contents: [ClipReport.Content]) -> [MessageBody] {
    contents.enumerated().map { index, content in
        let report = ClipReport(number: 1 << 40, content)
        return MessageBody(testDescription: "clip \(index)", bytes: report.bytes, text: "\(report)") { body in
            (try? ClipReport(body)).map { "\($0)" }
        }
    }
}

/// The requests and commands of jobs, and a preview.
private func bodiesOfJobs() -> [MessageBody] {
    let preview = PreviewRequest(
        source: SourceKey(number: 5), codec: .av1, width: 100, orientation: 3, payloads: [[1, 2], [], [3]])
    let card = CardRequest(stream: "talk", title: "Ü", host: "")
    let pause = PausePictureRequest(source: SourceKey(number: 6), file: [1, 2], isBlurred: true, seed: .max)
    let recording = RecordingRequest(expectsVideo: true, expectsAudio: false)
    let clip = ClipCommand(number: 7, milliseconds: 30_000)
    let packaging = PackagingRequest(rendition: .low, origin: MonotonicTime(nanoseconds: 5))
    var picture = PreviewPicture(
        width: 360, height: 640, blurHash: "LEHV6n", webP: [1], jpeg: [2, 3], cpuNanoseconds: 9)
    picture.blurredJPEG = [4]
    return [
        MessageBody(testDescription: "preview", bytes: preview.bytes, text: "\(preview)") { body in
            (try? PreviewRequest(body)).map { "\($0)" }
        },
        MessageBody(testDescription: "card", bytes: card.bytes, text: "\(card)") { body in
            (try? CardRequest(body)).map { "\($0)" }
        },
        MessageBody(testDescription: "pause picture", bytes: pause.bytes, text: "\(pause)") { body in
            (try? PausePictureRequest(body)).map { "\($0)" }
        },
        MessageBody(testDescription: "recording", bytes: recording.bytes, text: "\(recording)") { body in
            (try? RecordingRequest(body)).map { "\($0)" }
        },
        MessageBody(testDescription: "clip", bytes: clip.bytes, text: "\(clip)") { body in
            (try? ClipCommand(body)).map { "\($0)" }
        },
        MessageBody(testDescription: "packaging", bytes: packaging.bytes, text: "\(packaging)") { body in
            PackagingRequest(body).map { "\($0)" }
        },
        MessageBody(
            testDescription: "picture", bytes: PreviewPicture.bytes(picture), text: "\(picture)",
            read: { body in (try? PreviewPicture.read(body)).map { "\($0)" } }),
    ]
}

@Suite struct `The body of a message` {
    private static let all: [MessageBody] = {
        var all = bodies(ofRequests: `A message`.requests) + bodiesOfJobs()
        all += bodies(ofReports: `A message`.reports.filter { if case .job = $0 { false } else { true } })
        all += bodies(ofReports: [.job(JobID(number: 4), [1, 2, 3])])
        all += bodies(ofRecordings: [
            .began(.mp4, .h264, VideoResolution(width: 640, height: 360), hasAudio: true),
            .began(.webM, nil, nil, hasAudio: true), .bytes(offset: 1 << 40, [1, 2]),
            .flushed(milliseconds: .max), .finished(milliseconds: 5, .changed),
        ])
        all += bodies(ofClips: [
            .accepted(milliseconds: .max), .refused, .bytes(offset: 1 << 40, [1, 2]),
            .finished(milliseconds: 5), .failed,
        ])
        return all
    }()

    /// Whatever says less than it should was not written by the other end.
    @Test(arguments: all) func `is read as it was written, and no beginning of it is`(body: MessageBody) {
        #expect(body.read(body.bytes) == body.text)
        for length in 0..<body.bytes.count {
            #expect(body.read(Array(body.bytes.prefix(length))) == nil, "\(length) bytes")
        }
    }

    /// A length of four bytes may tell of gigabytes.
    @Test(arguments: all) func `costs nothing that is not there`(body: MessageBody) {
        for place in body.bytes.indices {
            var broken = body.bytes
            for index in place..<min(place + 4, broken.count) { broken[index] = 0xFF }
            let said = [broken, Array(broken.prefix(place + 4))].compactMap(body.read)
            #expect(said.allSatisfy { $0.utf8.count < 10_000 })
        }
    }

    @Test func `is refused in kinds and values that nobody knows`() {
        let body = [UInt8](repeating: 0, count: 200)
        for kind in 0...255 as ClosedRange<UInt8> where !(1...7).contains(kind) {
            #expect(throws: WireError.self) { try TranscoderRequest(kind, MessageReader(body)) }
            #expect(throws: WireError.self) { try TranscoderReport(kind, MessageReader(body)) }
        }
        for value in [0, 11, 255] as [UInt8] {
            var begin = body
            begin[8] = value
            #expect(throws: WireError.self) { try TranscoderRequest(2, MessageReader(begin)) }
        }
        for value in [7, 255] as [UInt8] {
            var open = body
            open[24] = value
            #expect(throws: WireError.self) { try TranscoderRequest(5, MessageReader(open)) }
        }
        #expect(throws: WireError.self) { try TranscoderReport(6, MessageReader([4] + body)) }
        for first in [0, 5, 255] as [UInt8] {
            #expect(throws: WireError.self) { try RecordingReport([first] + body) }
            #expect(throws: WireError.self) { try PackagingReport([first] + body) }
        }
        // A container, a codec and a cause that do not exist.
        for bytes in [[1, 2, 0], [1, 0, 7], [4, 0, 0, 0, 0, 0, 0, 0, 0, 3]] as [[UInt8]] {
            #expect(throws: WireError.self) { try RecordingReport(bytes + body) }
        }
        for kind in [0, 6, 255] as [UInt8] {
            var clip = body
            clip[8] = kind
            #expect(throws: WireError.self) { try ClipReport(clip) }
        }
    }

    @Test func `holds no more than it may`() throws {
        var reader = MessageReader([0, 0, 0, 3, 1, 2, 3, 0, 0, 0, 1, 4])
        let three = try reader.array(limit: 3)
        #expect(three == [1, 2, 3])
        #expect(throws: WireError.self) {
            var again = MessageReader([0, 0, 0, 3, 1, 2, 3])
            _ = try again.array(limit: 2)
        }
        for (count, isTaken) in [(OutputPacket.limit, true), (OutputPacket.limit + 1, false)] {
            let packet = OutputPacket(
                source: 0, layer: 0, captured: nil, bytes: [UInt8](repeating: 1, count: count))
            var bytes: [UInt8] = []
            TranscoderReport.packet(JobID(number: 1), packet).append(to: &bytes)
            let report = try? TranscoderReport(bytes[4], MessageReader(Array(bytes[5...])))
            #expect((report != nil) == isTaken)
        }
        // What is logged is cut by whoever writes it; texts of another length are none of ours.
        for (event, text, isTaken) in [(64, 1_024, true), (65, 0, false), (0, 1_025, false)] {
            var bytes: [UInt8] = []
            TranscoderReport.log(
                .info, event: String(repeating: "e", count: event), text: String(repeating: "t", count: text)
            ).append(to: &bytes)
            let report = try? TranscoderReport(bytes[4], MessageReader(Array(bytes[5...])))
            #expect((report != nil) == isTaken)
        }
    }

    /// As long as the longest message, which comes in datagrams; one byte more ends the connection.
    @Test func `may be four megabytes long`() throws {
        let length = TranscoderChannel.messageLimit
        var bytes = [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: length >> $0) }
        bytes += [UInt8](repeating: 3, count: length)
        var assembler = MessageAssembler()
        var kinds: [UInt8] = []
        for start in stride(from: 0, to: bytes.count, by: TranscoderChannel.datagramLimit) {
            let end = min(start + TranscoderChannel.datagramLimit, bytes.count)
            try assembler.receive(bytes[start..<end]) { kind, _ in kinds.append(kind) }
        }
        try assembler.receive([0, 0, 0, 1, 9]) { kind, _ in kinds.append(kind) }
        #expect(kinds == [3, 9])
        let more = [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: (length + 1) >> $0) }
        var other = MessageAssembler()
        #expect(throws: WireError.invalid(.transcoderMessage)) { try other.receive(more) { _, _ in } }
    }

    @Test func `of a rendition or a composition is nothing else`() {
        for bytes in [[], [1, 2]] as [[UInt8]] { #expect(RenditionCommand(bytes) == nil) }
        #expect(RenditionCommand([7])?.layer == 7)
        #expect(RenditionCommand(layer: 300).bytes == [255] && RenditionCommand(layer: -1).bytes == [0])
        for bytes in [Array("[]".utf8), Array("{\"scene\":1}".utf8), [], [0xFF]] as [[UInt8]] {
            let (command, settings) = (CompositionCommand(bytes), RenditionSettings(bytes))
            #expect(command == nil && settings == nil)
        }
    }
}
