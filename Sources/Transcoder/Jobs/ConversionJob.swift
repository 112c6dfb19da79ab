import Base
import CLinux
import Codecs
import Foundation
import Wire

/// Re-encodes one publisher's pictures as VP8, on its own thread.
///
/// A command, without content, requests a key frame. The only report, of one byte, means that nothing can be decoded.
final class ConversionJob: TranscoderJob {
    private let inbox = JobInbox<Void>()

    init(_ environment: JobEnvironment) {
        let thread = Thread { [inbox] in
            Self.run(inbox, environment)
        }
        thread.name = "conversion"
        thread.start()
    }

    func command(_ body: [UInt8]) { inbox.put(.command(())) }

    func open(_ input: InputID, from source: SourceKey, _ codec: InputCodec) {
        inbox.put(.open(input, source))
    }

    func take(_ packet: InputPacket, of input: InputID) { inbox.put(.packet(packet, input)) }

    func close(_ input: InputID) { inbox.put(.close(input)) }

    func end() { inbox.put(.end) }

    /// The body of the thread; returns when the job ends.
    private static func run(_ inbox: JobInbox<Void>, _ environment: JobEnvironment) {
        var converter: PictureConverter?
        while true {
            for item in inbox.take(within: FrameAssembler.patience.wholeNanoseconds) {
                // Read for each item: lateness depends on the time spent on the items before it.
                let now = MonotonicTime(nanoseconds: clinux_monotonic_nanoseconds())
                switch item {
                case .command: converter?.requestKeyFrame()
                case .open(_, let source):
                    converter = PictureConverter(seed: SystemRandomNumberGenerator().seed) { codec in
                        (try? VideoDecoder(codec, reorders: true)).map {
                            RegisteredReorderingDecoder($0, of: source, in: environment.register)
                        }
                    }
                case .packet(let packet, _):
                    send(converter?.receive(packet, at: now) ?? [], environment)
                case .close: converter = nil
                case .end: return
                }
            }
            let now = MonotonicTime(nanoseconds: clinux_monotonic_nanoseconds())
            send(converter?.advance(to: now) ?? [], environment)
            if converter?.isHopeless == true {
                environment.report([1])
                converter = nil
            }
        }
    }

    private static func send(_ made: [OutputPacket], _ environment: JobEnvironment) {
        environment.outlet.send(made.map { .packet(environment.id, $0) })
    }
}

/// Registers the source of frames while they are decoded, so that the server can attribute a crash.
final class RegisteredReorderingDecoder: ReorderingDecoder {
    private typealias Shown = (picture: Picture, timestamp: Int64)

    private let decoder: VideoDecoder
    private let source: SourceKey
    private let register: DecodingRegister

    init(_ decoder: VideoDecoder, of source: SourceKey, in register: DecodingRegister) {
        self.decoder = decoder
        self.source = source
        self.register = register
    }

    func decode(
        _ frame: [UInt8], timestamp: Int64
    ) throws(CodecError) -> (picture: Picture, timestamp: Int64)? {
        let result = register.whileDecoding(source) { () -> Result<Shown?, CodecError> in
            do throws(CodecError) {
                return .success(try decoder.decode(frame, timestamp: timestamp))
            } catch {
                return .failure(error)
            }
        }
        return try result.get()
    }
}
