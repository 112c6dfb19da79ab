import Base
import Ingest
import Restream
import Wire

/// A publisher, and the server's half of RTMP at the other end of it.
struct RestreamRig {
    static let start = MonotonicTime(nanoseconds: 5_000_000_000)
    static let format = RestreamFormat(
        width: 640, height: 360, framesPerSecond: 30,
        pictureHeader: [0, 0, 0, 1, 0x67, 0x42, 0xC0, 0x1F, 0xD9, 0, 0, 0, 1, 0x68, 0xCE, 0x3C, 0x80],
        soundConfiguration: [0x11, 0x90])

    var publisher: RTMPPublisher
    var server: RTMPSession
    var now = start
    /// What the server was asked and told.
    var keys: [String] = []
    var video: [(timestamp: UInt32, tag: FLVVideoTag, body: [UInt8])] = []
    var audio: [(timestamp: UInt32, tag: FLVAudioTag, body: [UInt8])] = []
    var metadata: [[AMF0Value.Member]] = []
    var serverEnd: IngestEnd?
    private var lastSample: UInt64 = 0

    init(_ url: String = "rtmp://live.example.org/live", key: String = "talk?token=x") throws {
        let random = [UInt8](repeating: 7, count: RTMPHandshake.randomLength)
        publisher = RTMPPublisher(
            to: try RestreamAddress(url), key: Secret(key), random: random, at: Self.start)
        server = RTMPSession(random: random, at: Self.start)
    }

    /// Hands everything to and fro until nobody says anything more.
    mutating func talk() {
        while true {
            let bytes = publisher.takeOutput()
            guard !bytes.isEmpty else { return }
            take(server.receive(bytes.span, at: now))
        }
    }

    mutating func take(_ effects: [RTMPSession.Effect]) {
        for effect in effects {
            switch effect {
            case .send(let bytes): publisher.receive(bytes.span)
            case .publish(let key): keys.append(key.exposed)
            case .metadata(let members): metadata.append(members)
            case .video(let bytes, let timestamp):
                guard let tag = try? FLVVideoTag(parsing: bytes.span) else { continue }
                video.append((timestamp, tag, Array(bytes[tag.body])))
            case .audio(let bytes, let timestamp):
                guard let tag = try? FLVAudioTag(parsing: bytes.span) else { continue }
                audio.append((timestamp, tag, Array(bytes[tag.body])))
            case .finish(let end): serverEnd = end
            }
        }
    }

    mutating func accept() {
        take(server.accept(at: now))
        talk()
    }

    mutating func goLive() {
        talk()
        accept()
        publisher.send(.format(Self.format), waiting: 0)
    }

    /// - Parameters:
    ///   - milliseconds: since the start.
    ///   - bytes: nil for valid ones of `size`.
    mutating func send(
        _ kind: RestreamSample.Kind, at milliseconds: Int64, size: Int = 20, bytes: [UInt8]? = nil,
        skipping: UInt64 = 0, waiting: Int = 0
    ) {
        lastSample += 1 + skipping
        let valid =
            kind == .sound
            ? [UInt8](repeating: 0x21, count: size)
            : [0, 0, 0, 1, kind == .keyFrame ? 0x65 : 0x41] + [UInt8](repeating: 0x80, count: size)
        let sample = RestreamSample(
            kind: kind, number: lastSample, time: Self.start + .milliseconds(milliseconds),
            bytes: bytes ?? valid)
        publisher.send(.sample(sample), waiting: waiting)
    }

    /// What the publisher's target says, byte by byte as a server writes it.
    static func bytes(of messages: [RTMPMessage]) -> [UInt8] {
        let writer = RTMPChunkWriter()
        var bytes: [UInt8] = []
        for message in messages { writer.append(message, to: &bytes) }
        return bytes
    }

    /// S0, S1 and S2.
    static var greeting: [UInt8] { [3] + [UInt8](repeating: 9, count: RTMPHandshake.answerLength - 1) }
}
