import Base
import CLinux
import Codecs
import Foundation
import Wire

/// Makes HLS of one stream's programme, on a thread of its own.
final class PackagingJob: TranscoderJob {
    private let inbox = JobInbox<Void>()

    init(_ environment: JobEnvironment) {
        let thread = Thread { [inbox] in
            PackagingRunner(inbox: inbox, environment: environment).run()
        }
        thread.name = "packaging"
        thread.start()
    }

    func open(_ input: InputID, from source: SourceKey, _ codec: InputCodec) {
        inbox.put(.open(input, source))
    }

    func take(_ packet: InputPacket, of input: InputID) { inbox.put(.packet(packet, input)) }

    func close(_ input: InputID) { inbox.put(.close(input)) }

    func end() { inbox.put(.end) }
}

/// Drives a packager: the only one here who reads the clock.
private final class PackagingRunner {
    private let packager: Packager
    private let inbox: JobInbox<Void>
    private let environment: JobEnvironment
    private let sources = PackagingSources()

    init(inbox: JobInbox<Void>, environment: JobEnvironment) {
        self.inbox = inbox
        self.environment = environment
        let (sources, register) = (sources, environment.register)
        packager = Packager(
            at: Self.now,
            codecs: Packager.Codecs(
                makePictureDecoder: { codec, input in
                    guard let decoder = try? VideoDecoder(codec), let source = sources[input] else {
                        return nil
                    }
                    return RegisteredDecoder(decoder, of: source, in: register)
                },
                makeSoundDecoder: { input in
                    guard let decoder = try? OpusDecoder(), let source = sources[input] else { return nil }
                    return RegisteredSound(decoder, of: source, in: register)
                }))
    }

    private static var now: MonotonicTime { MonotonicTime(nanoseconds: clinux_monotonic_nanoseconds()) }

    func run() {
        while true {
            for item in inbox.take(within: packager.deadline.nanoseconds(since: Self.now)) {
                switch item {
                case .command: break
                case .open(let input, let source):
                    sources[input] = source
                    packager.open(input)
                case .packet(let packet, let input): packager.receive(packet, of: input, at: Self.now)
                case .close(let input):
                    packager.close(input)
                    sources[input] = nil
                case .end: return
                }
            }
            var reports = packager.advance(to: Self.now).map {
                TranscoderReport.job(environment.id, $0.bytes)
            }
            if let input = packager.takeKeyFrameWish() { reports.append(.keyFrameWanted(input)) }
            environment.outlet.send(reports)
            if packager.hasFailed {
                environment.outlet.send(.ended(environment.id))
                return
            }
        }
    }
}

/// Where the bitstreams of a packaging's inputs come from.
private final class PackagingSources {
    private var sources: [InputID: SourceKey] = [:]

    subscript(_ input: InputID) -> SourceKey? {
        get { sources[input] }
        set { sources[input] = newValue }
    }
}
