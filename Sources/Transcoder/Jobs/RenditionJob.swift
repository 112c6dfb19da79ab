import Base
import CLinux
import Codecs
import Foundation
import Wire

/// Creates the renditions of one track, on its own thread.
final class RenditionJob: TranscoderJob {
    private let inbox = JobInbox<RenditionCommand>()

    init?(_ body: [UInt8], _ environment: JobEnvironment) {
        guard let settings = RenditionSettings(body) else { return nil }
        let thread = Thread { [inbox] in
            RenditionRunner(settings, inbox: inbox, environment: environment).run()
        }
        thread.name = "rendition"
        thread.start()
    }

    func command(_ body: [UInt8]) {
        if let command = RenditionCommand(body) { inbox.put(.command(command)) }
    }

    func open(_ input: InputID, from source: SourceKey, _ codec: InputCodec) {
        inbox.put(.open(input, source))
    }

    func take(_ packet: InputPacket, of input: InputID) { inbox.put(.packet(packet, input)) }

    func close(_ input: InputID) { inbox.put(.close(input)) }

    func end() { inbox.put(.end) }
}

/// Runs a rendition maker, on its thread; the only type here that reads the clock.
private final class RenditionRunner {
    private static let reportInterval = Duration.seconds(1)

    private let settings: RenditionSettings
    private let inbox: JobInbox<RenditionCommand>
    private let environment: JobEnvironment
    /// Nil before the first input is open, and after it is closed.
    private var maker: (input: InputID, maker: RenditionMaker)?
    private var nextReport: MonotonicTime

    init(
        _ settings: RenditionSettings, inbox: JobInbox<RenditionCommand>, environment: JobEnvironment
    ) {
        self.settings = settings
        self.inbox = inbox
        self.environment = environment
        nextReport = Self.now + Self.reportInterval
    }

    private static var now: MonotonicTime { MonotonicTime(nanoseconds: clinux_monotonic_nanoseconds()) }

    /// The body of the thread; returns when the job ends.
    func run() {
        while true {
            let deadline = maker?.maker.deadline ?? nextReport
            let items = inbox.take(within: deadline.nanoseconds(since: Self.now))
            let began = Self.now
            for item in items {
                guard take(item, at: began) else { return }
            }
            var reports: [TranscoderReport] = []
            if let (input, maker) = maker {
                reports = maker.advance(to: Self.now).map { .packet(environment.id, OutputPacket($0)) }
                if maker.takeKeyFrameWish() { reports.append(.keyFrameWanted(input)) }
                maker.note(cost: Self.now - began)
            }
            let now = Self.now
            if now >= nextReport {
                nextReport = now + Self.reportInterval
                let status = maker?.maker.takeStatus(at: now) ?? RenditionStatus()
                reports.append(.job(environment.id, status.bytes))
            }
            environment.outlet.send(reports)
        }
    }

    /// Applies one item of the inbox.
    /// - Returns: false if it is the end.
    private func take(_ item: JobInbox<RenditionCommand>.Item, at now: MonotonicTime) -> Bool {
        switch item {
        case .command(let command):
            let kind = RenditionPacket.Kind(rawValue: UInt8(clamping: command.layer))
            if let kind { maker?.maker.requestKeyFrame(of: kind) }
        case .open(let input, let source): begin(input, source, at: now)
        case .packet(let packet, let input):
            if let (known, maker) = maker, known == input { maker.receive(packet, at: now) }
        case .close(let input):
            if maker?.input == input { maker = nil }
        case .end: return false
        }
        return true
    }

    /// Starts a maker for a new input; it replaces an earlier one.
    private func begin(_ input: InputID, _ source: SourceKey, at now: MonotonicTime) {
        let register = environment.register
        let seed = SystemRandomNumberGenerator().seed
        let new = RenditionMaker(settings, seed: seed, at: now) { codec in
            (try? VideoDecoder(codec)).map { RegisteredDecoder($0, of: source, in: register) }
        }
        maker = (input, new)
    }
}

extension OutputPacket {
    /// Renditions are layers of track 0.
    fileprivate init(_ packet: RenditionPacket) {
        self.init(source: 0, layer: packet.kind.rawValue, captured: packet.captured, bytes: packet.bytes)
    }
}
