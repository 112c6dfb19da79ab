import Base
import Codecs
import Foundation

/// Re-encodes one publisher's AAC as Opus, on its own thread.
final class SoundJob: TranscoderJob {
    private let inbox = JobInbox<[UInt8]>()

    /// - Parameter body: an AudioSpecificConfig; each command contains a new one.
    init?(_ body: [UInt8], _ environment: JobEnvironment) {
        let thread = Thread { [inbox] in
            Self.run(body, inbox, environment)
        }
        thread.name = "sound"
        thread.start()
    }

    func command(_ body: [UInt8]) { inbox.put(.command(body)) }

    func open(_ input: InputID, from source: SourceKey, _ codec: InputCodec) {
        inbox.put(.open(input, source))
    }

    func take(_ packet: InputPacket, of input: InputID) { inbox.put(.packet(packet, input)) }

    func close(_ input: InputID) { inbox.put(.close(input)) }

    func end() { inbox.put(.end) }

    /// The body of the thread; returns when the job ends.
    private static func run(
        _ configuration: [UInt8], _ inbox: JobInbox<[UInt8]>, _ environment: JobEnvironment
    ) {
        var configuration = configuration
        var converter: SoundConverter?
        while true {
            // No timers here: the wait only bounds the sleep.
            for item in inbox.take(within: 1_000_000_000) {
                switch item {
                case .command(let body):
                    configuration = body
                    converter?.configure(body)
                case .open(_, let source):
                    converter = try? SoundConverter(seed: SystemRandomNumberGenerator().seed) { body in
                        (try? AACDecoder(configuration: body)).map {
                            RegisteredFrameDecoder($0, of: source, in: environment.register)
                        }
                    }
                    converter?.configure(configuration)
                case .packet(let packet, _):
                    let made = converter?.receive(packet) ?? []
                    environment.outlet.send(made.map { .packet(environment.id, $0) })
                case .close: converter = nil
                case .end: return
                }
            }
        }
    }
}

/// Registers the source of frames while they are decoded, so that the server can attribute a crash.
private final class RegisteredFrameDecoder: FrameDecoder {
    private let decoder: AACDecoder
    private let source: SourceKey
    private let register: DecodingRegister

    init(_ decoder: AACDecoder, of source: SourceKey, in register: DecodingRegister) {
        self.decoder = decoder
        self.source = source
        self.register = register
    }

    func decode(_ frame: [UInt8]) throws(CodecError) -> [Float] {
        try register.whileDecoding(source) { () throws(CodecError) in try decoder.decode(frame) }
    }
}
