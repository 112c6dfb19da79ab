// Plays a stream by WHEP and writes it to a file: an example of RostrumClient without camera and loudspeaker.
import Base
import Foundation
import Net
import RostrumClient
import RostrumClientHeadless
import Transcoder

/// Writes received packets to a file: MP4 for H.264, otherwise WebM.
struct PacketFile {
    private let file: FileHandle
    /// Muxes packets; reports what to write at which offset.
    private var recording = FileRecording(RecordingRequest(expectsVideo: true, expectsAudio: true))
    /// Seconds from the server's clock to this machine's, from the first packet with a capture time.
    private var clockOffset: Double?
    /// Whether the muxer has ended the file.
    private(set) var isComplete = false

    init(_ path: String) throws {
        try Data().write(to: URL(filePath: path))
        file = try FileHandle(forWritingTo: URL(filePath: path))
    }

    /// Writes what the packet adds to the file.
    mutating func write(_ packet: MediaPacket) throws {
        guard let codec = InputCodec(sdpName: packet.codec) else { return }
        let now = MonotonicClock.now()
        let seconds = Double(now.nanoseconds) / 1e9
        if clockOffset == nil { clockOffset = packet.captured.map { seconds - $0 } }
        // A capture time more than an hour off is not used; the muxer then goes by arrival.
        var captured: MonotonicTime?
        if let offset = clockOffset, let time = packet.captured, abs(time + offset - seconds) < 3_600 {
            captured = now.advanced(byNanoseconds: Int64((time + offset - seconds) * 1e9))
        }
        try write(
            recording.take(
                InputPacket(
                    sequenceNumber: packet.sequenceNumber, timestamp: packet.timestamp, marker: packet.marker,
                    codec: codec, isEntryPoint: packet.startsKeyFrame, arrival: now, captured: captured,
                    payload: packet.payload), at: now))
    }

    /// Writes the end of the file.
    mutating func finish() throws {
        try write(recording.finish(at: MonotonicClock.now()))
        try file.close()
    }

    private mutating func write(_ reports: [RecordingReport]) throws {
        for report in reports {
            switch report {
            // The muxer also overwrites earlier bytes, so every write has an offset.
            case .bytes(let offset, let bytes):
                try file.seek(toOffset: offset)
                try file.write(contentsOf: bytes)
            case .finished: isComplete = true
            case .began, .flushed: break
            }
        }
    }
}

extension InputCodec {
    /// Nil for a codec that no file is written of.
    init?(sdpName: String) {
        switch sdpName {
        case "opus": self = .opus
        case "VP8": self = .vp8
        case "VP9": self = .vp9
        case "H264": self = .h264
        case "AV1": self = .av1
        default: return nil
        }
    }
}

/// Prints a line without buffering, also to a pipe.
func tell(_ text: String) { FileHandle.standardOutput.write(Data("\(text)\n".utf8)) }

let arguments = CommandLine.arguments
guard arguments.count >= 4, let url = URL(string: arguments[1]),
    let seconds = arguments.count > 4 ? Double(arguments[4]) : 10
else {
    tell("usage: headless-recorder SERVER STREAM FILE [SECONDS]   # ROSTRUM_TOKEN where watching takes one")
    exit(2)
}

/// Records until the time is over, the stream ends, or the file cannot continue.
func record() async throws {
    let engine = try HeadlessEngine()
    let token = ProcessInfo.processInfo.environment["ROSTRUM_TOKEN"]
    let stream = RostrumServer(url, sockets: engine).stream(
        arguments[2], tokens: token.map { .fixed($0) } ?? .none)

    // Waits up to 30 s for a stream that is not live yet. A lost connection is restored, and the packets continue.
    let session = try await stream.watch(wait: 30, engine: engine)
    // The time runs from the first connection.
    let deadline = Task {
        for await state in session.states {
            tell("\(state)")
            if state == .connected { break }
        }
        try await Task.sleep(for: .seconds(seconds))
        await session.close()
    }
    var file = try PacketFile(arguments[3])
    for await packet in session.packets {
        try file.write(packet)
        // Another codec, or another kind of media, would need another file.
        if file.isComplete { break }
    }
    deadline.cancel()
    await session.close()
    try file.finish()
    tell("written: \(arguments[3])")
}

do {
    try await record()
} catch {
    tell("headless-recorder: \(error)")
    exit(1)
}
