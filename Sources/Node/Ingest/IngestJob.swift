import Base
import Synchronization
import Transcoder

/// A job of the transcoder that makes something of what one publisher sends; begun again when it is lost.
///
/// Used by the thread that reads what the publisher sends.
final class IngestJob {
    /// A job of the transcoder, and the way into it.
    private struct Run {
        let job: JobID
        let input: InputID
        let end: EndMark
    }

    /// Whether a job is over; set by the transcoder's thread.
    private final class EndMark: Sendable {
        let isSet = Atomic(false)
        let isHopeless = Atomic(false)
    }

    private let kind: JobKind
    private let source: SourceKey
    private let codec: InputCodec
    private let retryInterval: Duration
    private let transcoder: TranscoderSupervisor
    private let send: @Sendable (OutputPacket) -> Void
    private var run: Run?
    private var nextTry = MonotonicTime.zero
    private var number: Int64 = 0
    /// Whether what comes cannot be decoded, or kills whoever decodes it.
    private(set) var isHopeless = false

    init(
        _ kind: JobKind, from origin: SourceOrigin, _ codec: InputCodec, by transcoder: TranscoderSupervisor,
        retryInterval: Duration, send: @escaping @Sendable (OutputPacket) -> Void
    ) {
        self.kind = kind
        source = SourceKey(origin)
        self.codec = codec
        self.transcoder = transcoder
        self.retryInterval = retryInterval
        self.send = send
    }

    deinit {
        if let run { transcoder.end(run.job) }
    }

    /// Makes sure that there is a job, if there can be one.
    /// - Parameter body: with which one is begun.
    /// - Returns: whether it was begun just now, and knows nothing of what came before.
    func prepare(_ body: [UInt8], at now: MonotonicTime) -> Bool {
        if let run, run.end.isSet.load(ordering: .acquiring) {
            isHopeless = run.end.isHopeless.load(ordering: .acquiring)
            transcoder.end(run.job)
            self.run = nil
        }
        guard run == nil, now >= nextTry else { return false }
        nextTry = now + retryInterval
        return begin(body)
    }

    private func begin(_ body: [UInt8]) -> Bool {
        let end = EndMark()
        let job = transcoder.begin(kind, body) { [send] event in
            switch event {
            case .packet(let packet): send(packet)
            case .report:
                end.isHopeless.store(true, ordering: .releasing)
                end.isSet.store(true, ordering: .releasing)
            case .lost, .ended: end.isSet.store(true, ordering: .releasing)
            case .keyFrameWanted: break
            }
        }
        guard let job else { return false }
        guard let input = transcoder.open(for: job, from: source, codec) else {
            isHopeless = transcoder.refuses(source)
            transcoder.end(job)
            return false
        }
        run = Run(job: job, input: input, end: end)
        return true
    }

    /// Says something to the job, in its own words; nothing without one.
    func command(_ body: [UInt8]) {
        if let run { transcoder.command(run.job, body) }
    }

    /// Feeds a packet; nothing without a job.
    /// - Parameters:
    ///   - payload: of the packet, which is without it.
    ///   - atOnce: as a supervisor takes it.
    func feed(_ packet: InputPacket, payload: Span<UInt8>, atOnce: Bool = false) {
        guard let run else { return }
        number += 1
        var packet = packet
        packet.sequenceNumber = number
        transcoder.feed(run.input, packet, payload: payload, atOnce: atOnce)
    }
}
