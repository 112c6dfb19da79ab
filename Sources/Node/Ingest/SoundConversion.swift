import Base
import Ingest
import Synchronization
import Transcoder

/// Has the transcoder make Opus of one publisher's AAC, and begins again when it dies; until then there is no sound.
///
/// Used by the thread that reads what the publisher sends.
final class SoundConversion {
    /// A job of the transcoder, and the way into it.
    private struct Run {
        let job: JobID
        let input: InputID
        /// Set by the transcoder's thread.
        let end: EndMark
    }

    /// Whether a job is over.
    private final class EndMark: Sendable {
        let isSet = Atomic(false)
    }

    private static let retryInterval = Duration.seconds(1)

    private let inlet: IngestInlet
    private let transcoder: TranscoderSupervisor
    private var configuration: [UInt8] = []
    private var run: Run?
    private var nextTry = MonotonicTime.zero
    private var number: Int64 = 0

    /// - Returns: nil where nothing is decoded.
    init?(_ inlet: IngestInlet) {
        guard let transcoder = inlet.transcoder else { return nil }
        self.inlet = inlet
        self.transcoder = transcoder
    }

    deinit {
        end()
    }

    /// Frames are of this configuration from now on.
    func configure(_ configuration: [UInt8]) {
        self.configuration = configuration
        if let run { transcoder.command(run.job, configuration) }
    }

    func take(_ sound: IngestSound, at now: MonotonicTime) {
        if let run, run.end.isSet.load(ordering: .acquiring) {
            transcoder.end(run.job)
            self.run = nil
        }
        if run == nil { begin(at: now) }
        guard let run else { return }
        number += 1
        let packet = InputPacket(
            sequenceNumber: number, timestamp: sound.timestamp, marker: true, codec: .aac, isEntryPoint: true,
            arrival: now, captured: sound.captured)
        transcoder.feed(run.input, packet, payload: sound.bytes.span)
    }

    private func begin(at now: MonotonicTime) {
        guard now >= nextTry else { return }
        nextTry = now + Self.retryInterval
        let end = EndMark()
        let job = transcoder.begin(.sound, configuration) { [inlet] event in
            switch event {
            case .packet(let packet): inlet.send(packet)
            case .lost, .ended: end.isSet.store(true, ordering: .releasing)
            case .report, .keyFrameWanted: break
            }
        }
        guard let job else { return }
        guard let input = transcoder.open(for: job, from: SourceKey(.sound(inlet.session)), .aac) else {
            return transcoder.end(job)
        }
        run = Run(job: job, input: input, end: end)
    }

    private func end() {
        if let run { transcoder.end(run.job) }
    }
}
