import Base
import Ingest
import Wire

/// An encoder at the other end of a session, as far as tests need one.
struct RTMPRig {
    var session: RTMPSession
    var now = MonotonicTime(nanoseconds: 1_000_000_000)
    private let writer = RTMPChunkWriter()
    private var reader = RTMPChunkReader(messageLimit: 1 << 20)
    /// Bytes of the handshake that the server still has to send.
    private var handshake = 1 + 2 * RTMPHandshake.blockLength

    /// What a session did, with its bytes read.
    struct Outcome {
        var messages: [RTMPMessage] = []
        var keys: [String] = []
        var audio: [(timestamp: UInt32, bytes: [UInt8])] = []
        var video: [(timestamp: UInt32, bytes: [UInt8])] = []
        var metadata: [[AMF0Value.Member]] = []
        var end: IngestEnd?

        var commands: [RTMPCommand] {
            messages.filter { $0.kind == .command }.compactMap { try? RTMPCommand(parsing: $0.payload.span) }
        }

        /// What is announced in an answer to `connect`.
        var fourCCs: [String] {
            guard case .array(let names)? = commands.first?.object[name: "fourCcList"] else { return [] }
            return names.compactMap(\.text)
        }

        /// Of the first command that tells a status.
        var status: String? { commands.lazy.compactMap { $0.arguments.first?[name: "code"]?.text }.first }
    }

    init(isDecoding: Bool = true) {
        session = RTMPSession(
            random: [UInt8](repeating: 7, count: RTMPHandshake.randomLength), isDecoding: isDecoding, at: now)
    }

    mutating func receive(_ bytes: [UInt8]) -> Outcome { outcome(of: session.receive(bytes.span, at: now)) }

    mutating func receive(_ message: RTMPMessage) -> Outcome {
        var bytes: [UInt8] = []
        writer.append(message, to: &bytes)
        return receive(bytes)
    }

    mutating func receive(_ command: RTMPCommand, on stream: UInt32 = 0) -> Outcome {
        receive(command.message(on: stream))
    }

    mutating func outcome(of effects: [RTMPSession.Effect]) -> Outcome {
        var outcome = Outcome()
        for effect in effects {
            switch effect {
            case .send(let bytes):
                let skipped = min(handshake, bytes.count)
                handshake -= skipped
                let rest = Array(bytes.dropFirst(skipped))
                try? reader.read(rest.span) { outcome.messages.append($0) }
            case .publish(let key): outcome.keys.append(key.exposed)
            case .metadata(let members): outcome.metadata.append(members)
            case .audio(let bytes, let timestamp): outcome.audio.append((timestamp, bytes))
            case .video(let bytes, let timestamp): outcome.video.append((timestamp, bytes))
            case .finish(let reason): outcome.end = reason
            }
        }
        return outcome
    }

    mutating func advance(by time: Duration) -> Outcome {
        now = now + time
        return outcome(of: session.advance(to: now))
    }

    /// C0, C1 and C2.
    static var greeting: [UInt8] { [3] + [UInt8](repeating: 1, count: 2 * RTMPHandshake.blockLength) }

    static func connect(_ application: String = "live") -> RTMPCommand {
        RTMPCommand("connect", transaction: 1, object: .object([.init("app", .string(application))]))
    }

    static func publish(_ key: String) -> RTMPCommand {
        RTMPCommand("publish", transaction: 5, object: .null, [.string(key), .string("live")])
    }

    /// As far as the question whether it may publish.
    mutating func ask(_ key: String = "talk?token=x") -> Outcome {
        _ = receive(Self.greeting)
        _ = receive(Self.connect())
        _ = receive(RTMPCommand("createStream", transaction: 4))
        return receive(Self.publish(key), on: 1)
    }

    mutating func beginPublishing() {
        _ = ask()
        _ = outcome(of: session.accept(at: now))
    }
}
