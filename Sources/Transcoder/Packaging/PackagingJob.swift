import Base
import CLinux
import Codecs
import Foundation
import Wire

/// Packages one stream's programme as HLS, on its own thread.
final class PackagingJob: TranscoderJob {
    private let inbox = JobInbox<PackagingCommand>()

    init(_ request: PackagingRequest, _ environment: JobEnvironment) {
        let thread = Thread { [inbox] in
            PackagingRunner(request, inbox: inbox, environment: environment).run()
        }
        thread.name = "packaging"
        thread.start()
    }

    func command(_ body: [UInt8]) {
        if let command = PackagingCommand(body) { inbox.put(.command(command)) }
    }

    func open(_ input: InputID, from source: SourceKey, _ codec: InputCodec) {
        inbox.put(.open(input, source))
    }

    func take(_ packet: InputPacket, of input: InputID) { inbox.put(.packet(packet, input)) }

    func close(_ input: InputID) { inbox.put(.close(input)) }

    func end() { inbox.put(.end) }
}

/// Runs a packager, on its thread; the only type here that reads the clock.
private final class PackagingRunner {
    private let packager: Packager
    private let inbox: JobInbox<PackagingCommand>
    private let environment: JobEnvironment
    private let sources = PackagingSources()

    init(_ request: PackagingRequest, inbox: JobInbox<PackagingCommand>, environment: JobEnvironment) {
        self.inbox = inbox
        self.environment = environment
        packager = Packager(
            at: Self.now,
            codecs: .registered(in: environment.register, sharing: environment.pool) {
                [sources] in sources[$0]
            },
            request: request)
    }

    private static var now: MonotonicTime { MonotonicTime(nanoseconds: clinux_monotonic_nanoseconds()) }

    /// The body of the thread; returns when the job ends or fails.
    func run() {
        while true {
            for item in inbox.take(within: packager.deadline.nanoseconds(since: Self.now)) {
                switch item {
                case .command(.reportSamples(let isOn)): packager.reportsSamples = isOn
                case .open(let input, let source):
                    sources[input] = source
                    packager.open(input)
                case .packet(let packet, let input): packager.receive(packet, of: input, at: Self.now)
                case .close(let input):
                    packager.close(input, at: Self.now)
                    sources[input] = nil
                case .end: return
                }
            }
            var reports = packager.advance(to: Self.now).map {
                TranscoderReport.job(environment.id, $0.bytes)
            }
            if let input = packager.takeKeyFrameWish(at: Self.now) { reports.append(.keyFrameWanted(input)) }
            environment.outlet.send(reports)
            if packager.hasFailed {
                environment.outlet.send(.ended(environment.id))
                return
            }
        }
    }
}

extension Packager.Codecs {
    /// Decoders of the libraries, which register their source while they decode.
    /// - Parameters:
    ///   - pool: shares decoding with other jobs; nil for clips, which are made of the past.
    ///   - source: the source of an input; nil for one that is not decoded.
    static func registered(
        in register: DecodingRegister, sharing pool: DecodingPool? = nil,
        source: @escaping (InputID) -> SourceKey?
    ) -> Packager.Codecs {
        Packager.Codecs(
            makePictureDecoder: { codec, input in
                guard let source = source(input) else { return nil }
                // Only `original` receives HEVC, whose pictures may be reordered.
                guard codec != .hevc else {
                    return (try? VideoDecoder(codec, reorders: true)).map {
                        ReorderedFrames(RegisteredReorderingDecoder($0, of: source, in: register))
                    }
                }
                let make: @Sendable () -> (any PictureDecoder)? = {
                    (try? VideoDecoder(codec)).map { RegisteredDecoder($0, of: source, in: register) }
                }
                guard let pool else { return make() }
                return pool.decoder(of: DecodingPool.Source(key: source, codec: codec), make: make)
            },
            makeSoundDecoder: { input in
                guard let decoder = try? OpusDecoder(), let source = source(input) else { return nil }
                return RegisteredSound(decoder, of: source, in: register)
            })
    }
}

/// Adapts a reordering decoder, whose pictures are returned in display order.
private final class ReorderedFrames: AssembledFrameDecoder {
    private let decoder: any ReorderingDecoder

    init(_ decoder: any ReorderingDecoder) {
        self.decoder = decoder
    }

    func decode(_ frame: AssembledFrame) throws(CodecError) -> Picture? {
        try decode(frame, timestamp: 0)?.picture
    }

    func decode(
        _ frame: AssembledFrame, timestamp: Int64
    ) throws(CodecError) -> (picture: Picture, timestamp: Int64)? {
        try decoder.decode(frame.bytes, timestamp: timestamp)
    }
}

/// The source of each input; a class, so that the decoder factories see inputs that are opened later.
private final class PackagingSources {
    private var sources: [InputID: SourceKey] = [:]

    subscript(_ input: InputID) -> SourceKey? {
        get { sources[input] }
        set { sources[input] = newValue }
    }
}
