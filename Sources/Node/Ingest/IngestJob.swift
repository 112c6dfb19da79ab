import Base
import Synchronization
import Transcoder

/// A transcoder job that converts one publisher's audio or video, and is begun again when it is lost.
///
/// Not thread-safe: it belongs to the thread that reads what the publisher sends.
final class IngestJob {
    /// One run of the job, and its input.
    private struct Run {
        let job: JobID
        let input: InputID
        let end: EndMark
    }

    /// Whether a run is over; set on the transcoder's thread and read on the publisher's.
    private final class EndMark: Sendable {
        let isSet = Atomic(false)
        /// Whether another run would fail too.
        let isHopeless = Atomic(false)
    }

    private let kind: JobKind
    private let source: SourceKey
    private let codec: InputCodec
    /// The least time between two attempts to begin a run.
    private let retryInterval: Duration
    private let transcoder: TranscoderSupervisor
    private let send: @Sendable (OutputPacket) -> Void
    private var run: Run?
    /// No attempt is made before this time.
    private var nextTry = MonotonicTime.zero
    /// The sequence number of the last packet, over all runs.
    private var number: Int64 = 0
    /// Whether the media cannot be decoded, or has made the transcoder crash too often.
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

    // Without a publisher the job would wait for packets forever.
    deinit {
        if let run { transcoder.end(run.job) }
    }

    /// Begins a run if there is none, unless the last attempt was less than `retryInterval` ago.
    /// - Parameter body: the settings with which a run begins.
    /// - Returns: whether a run was begun just now, which has received nothing yet.
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
            // A job of these kinds reports only that it cannot decode its input.
            case .report:
                end.isHopeless.store(true, ordering: .releasing)
                end.isSet.store(true, ordering: .releasing)
            case .lost, .ended: end.isSet.store(true, ordering: .releasing)
            case .keyFrameWanted: break
            }
        }
        guard let job else { return false }
        guard let input = transcoder.open(for: job, from: source, codec) else {
            // An input is refused if the queue is full, which passes, or if the source has crashed the process too
            // often.
            isHopeless = transcoder.refuses(source)
            transcoder.end(job)
            return false
        }
        run = Run(job: job, input: input, end: end)
        return true
    }

    /// Sends the job a command in its own format; without effect if there is no run.
    func command(_ body: [UInt8]) {
        if let run { transcoder.command(run.job, body) }
    }

    /// Feeds a packet to the job; without effect if there is no run.
    /// - Parameters:
    ///   - packet: gets its sequence number here.
    ///   - payload: the packet's payload.
    ///   - atOnce: as in `TranscoderSupervisor.feed`.
    func feed(_ packet: InputPacket, payload: Span<UInt8>, atOnce: Bool = false) {
        guard let run else { return }
        number += 1
        var packet = packet
        packet.sequenceNumber = number
        transcoder.feed(run.input, packet, payload: payload, atOnce: atOnce)
    }
}
