import Base
import CLinux
import Codecs
import Foundation
import Wire

/// A command to a composition; the job's request is a command with a scene.
package struct CompositionCommand: Equatable, Sendable, Codable {
    /// The new scene; nil if the stage has not changed.
    package var scene: CompositionScene?
    /// Whether a viewer waits for a key frame.
    package var isKeyFrameWanted = false

    package init(scene: CompositionScene? = nil, isKeyFrameWanted: Bool = false) {
        self.scene = scene
        self.isKeyFrameWanted = isKeyFrameWanted
    }

    /// The body, in JSON.
    package var bytes: [UInt8] { (try? JSONEncoder().encode(self)).map(Array.init) ?? [] }

    /// Nil for a body that is not valid.
    init?(_ bytes: [UInt8]) {
        guard let command = try? JSONDecoder().decode(Self.self, from: Data(bytes)) else { return nil }
        self = command
    }
}

extension CompositionStatus {
    /// The report's body, in JSON.
    var bytes: [UInt8] { (try? JSONEncoder().encode(self)).map(Array.init) ?? [] }

    /// Nil for a body that is not valid.
    package init?(_ bytes: [UInt8]) {
        guard let status = try? JSONDecoder().decode(Self.self, from: Data(bytes)) else { return nil }
        self = status
    }
}

/// Composes the programme of one stream, on its own thread.
final class CompositionJob: TranscoderJob {
    private let inbox = JobInbox<CompositionCommand>()

    init?(_ body: [UInt8], _ environment: JobEnvironment) {
        guard let scene = CompositionCommand(body)?.scene else { return nil }
        let thread = Thread { [inbox] in
            CompositionRunner(scene, inbox: inbox, environment: environment).run()
        }
        thread.name = "composition"
        thread.start()
    }

    func command(_ body: [UInt8]) {
        guard let command = CompositionCommand(body) else { return }
        inbox.put(.command(command))
    }

    func open(_ input: InputID, from source: SourceKey, _ codec: InputCodec) {
        inbox.put(.open(input, source))
    }

    func take(_ packet: InputPacket, of input: InputID) {
        inbox.put(.packet(packet, input))
    }

    func close(_ input: InputID) {
        inbox.put(.close(input))
    }

    func end() {
        inbox.put(.end)
    }
}

/// Runs a composition, on its thread; the only type here that reads the clock.
private final class CompositionRunner {
    private static let reportInterval = Duration.seconds(1)

    private let composition: Composition
    private let inbox: JobInbox<CompositionCommand>
    private let environment: JobEnvironment
    private let sources = CompositionSources()
    private var nextReport: MonotonicTime

    init(_ scene: CompositionScene, inbox: JobInbox<CompositionCommand>, environment: JobEnvironment) {
        self.inbox = inbox
        self.environment = environment
        let now = Self.now
        let (sources, register) = (sources, environment.register)
        let codecs = Composition.Codecs(
            makePictureDecoder: { codec, input in
                guard let decoder = try? VideoDecoder(codec), let source = sources[input] else { return nil }
                return RegisteredDecoder(decoder, of: source, in: register)
            },
            makeSoundDecoder: { input in
                guard let decoder = try? OpusDecoder(), let source = sources[input] else { return nil }
                return RegisteredSound(decoder, of: source, in: register)
            })
        composition = Composition(
            scene, seed: SystemRandomNumberGenerator().seed, codecs: codecs, at: now)
        nextReport = now + Self.reportInterval
    }

    private static var now: MonotonicTime { MonotonicTime(nanoseconds: clinux_monotonic_nanoseconds()) }

    /// The body of the thread; returns when the job ends.
    func run() {
        while true {
            let items = inbox.take(within: composition.deadline.nanoseconds(since: Self.now))
            let began = Self.now
            for item in items {
                guard take(item, at: began) else { return }
            }
            let packets = composition.advance(to: Self.now)
            let now = Self.now
            composition.note(cost: now - began, at: now)
            var reports = packets.map { TranscoderReport.packet(environment.id, OutputPacket($0)) }
            reports += composition.takeKeyFrameWishes().map { .keyFrameWanted(InputID(number: $0)) }
            if now >= nextReport {
                nextReport = now + Self.reportInterval
                reports.append(.job(environment.id, composition.takeStatus(at: now).bytes))
            }
            environment.outlet.send(reports)
        }
    }

    /// Applies one item of the inbox.
    /// - Returns: false if it is the end.
    private func take(_ item: JobInbox<CompositionCommand>.Item, at now: MonotonicTime) -> Bool {
        switch item {
        case .command(let command):
            if let scene = command.scene { composition.update(scene, at: now) }
            if command.isKeyFrameWanted { composition.requestKeyFrame() }
        case .open(let input, let source): sources[input.number] = source
        case .packet(let packet, let input): composition.receive(packet, of: input.number, at: now)
        case .close(let input): sources[input.number] = nil
        case .end: return false
        }
        return true
    }
}

extension SystemRandomNumberGenerator {
    /// A random number.
    var seed: UInt64 {
        var generator = self
        return generator.next()
    }
}

/// The source of each input; a class, so that the decoder factories see inputs that are opened later.
private final class CompositionSources {
    private var sources: [UInt64: SourceKey] = [:]

    subscript(_ input: UInt64) -> SourceKey? {
        get { sources[input] }
        set { sources[input] = newValue }
    }
}

/// Registers the source of a sound while it is decoded, so that the server can attribute a crash.
final class RegisteredSound: SoundDecoder {
    private let decoder: OpusDecoder
    private let source: SourceKey
    private let register: DecodingRegister

    init(_ decoder: OpusDecoder, of source: SourceKey, in register: DecodingRegister) {
        self.decoder = decoder
        self.source = source
        self.register = register
    }

    func decode(_ packet: [UInt8]) throws(CodecError) -> [Float] {
        try register.whileDecoding(source) { () throws(CodecError) in try decoder.decode(packet) }
    }

    func recover(from packet: [UInt8], frames: Int) throws(CodecError) -> [Float] {
        try register.whileDecoding(source) { () throws(CodecError) in
            try decoder.recover(from: packet, frames: frames)
        }
    }

    func conceal(frames: Int) throws(CodecError) -> [Float] {
        try register.whileDecoding(source) { () throws(CodecError) in try decoder.conceal(frames: frames) }
    }
}

extension OutputPacket {
    /// Track 0 is the mix; track 1 is the picture, with its small copy as layer 0.
    fileprivate init(_ packet: ComposedPacket) {
        self.init(
            source: packet.kind == .audio ? 0 : 1, layer: packet.kind == .video ? 1 : 0,
            captured: packet.captured, bytes: packet.bytes)
    }
}
