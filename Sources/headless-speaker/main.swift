// Joins a stage, sends a tone and writes a comment: an example of RostrumClient without a microphone.
import Codecs
import Foundation
import RostrumClient
import RostrumClientHeadless

/// A sine wave of 440 Hz as Opus packets of 20 ms.
struct Tone {
    private let encoder: OpusEncoder
    /// In samples since the start; also the RTP time stamp.
    private var position = 0

    init() throws {
        encoder = try OpusEncoder(bitrate: 48_000)
    }

    /// The next packet, for the first m-line.
    mutating func next() throws -> MediaPacket {
        let samples = (0..<OpusEncoder.frames).flatMap { index -> [Float] in
            let value = Float(0.2 * sin(2 * .pi * 440 * Double(position + index) / 48_000))
            return [value, value]
        }
        defer { position += OpusEncoder.frames }
        // 20 dB below the maximum is loud enough for the server to treat this participant as speaking.
        return MediaPacket(
            mid: "0", codec: "opus", payload: try encoder.encode(samples),
            timestamp: UInt32(truncatingIfNeeded: position), audioLevel: 20)
    }
}

/// Prints a line without buffering, also to a pipe.
func tell(_ text: String) { FileHandle.standardOutput.write(Data("\(text)\n".utf8)) }

let arguments = CommandLine.arguments
guard arguments.count >= 4, let url = URL(string: arguments[1]),
    let seconds = arguments.count > 4 ? Double(arguments[4]) : 10
else {
    tell("usage: headless-speaker SERVER STREAM NAME [SECONDS]   # ROSTRUM_TOKEN, unless it runs with --dev")
    exit(2)
}
let name = arguments[3]
let token = ProcessInfo.processInfo.environment["ROSTRUM_TOKEN"]

/// Speaks for the given time, and prints what followers receive meanwhile.
func speak() async throws {
    let engine = try HeadlessEngine()
    let stream = RostrumServer(url, sockets: engine).stream(
        arguments[2], tokens: token.map { .fixed($0) } ?? .development(.speaker, identity: name, name: name))

    // Two connections: a socket for state and comments, and a session for media.
    let sync = stream.follow()
    let session = try await stream.joinStage(sending: [.sendAudio], voices: 1, pictures: 0, engine: engine)

    let listening = Task {
        for await event in sync.events {
            switch event {
            case .me(let me): tell("we are \(me.name ?? me.id), \(me.role)")
            case .comments(let comments):
                for comment in comments { tell("\(comment.author): \(comment.text)") }
            case .message(let message) where message.type == "refused":
                tell(String(decoding: message.data, as: UTF8.self))
            case .changed, .muteRequested, .message: break
            }
        }
    }
    // A comment needs the socket, and the tone needs the media connection.
    for await state in sync.states where state == .connected { break }
    try await sync.comment("Good evening from \(name)!")
    for await state in session.states where state == .connected { break }
    tell("on stage")

    var tone = try Tone()
    let clock = ContinuousClock()
    // Sleeping until fixed times keeps the pace of 20 ms without drift.
    var due = clock.now
    let end = due.advanced(by: .seconds(seconds))
    while due < end {
        await session.send(try tone.next())
        due = due.advanced(by: .milliseconds(20))
        try await clock.sleep(until: due)
    }
    await session.close()
    await sync.close()
    await listening.value
}

do {
    try await speak()
} catch {
    tell("headless-speaker: \(error)")
    exit(1)
}
