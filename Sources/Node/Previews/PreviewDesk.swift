import Base
import Forwarding
import Net
import Synchronization
import Transcoder

/// Makes previews of live streams, and keeps the latest of each.
///
/// A tap captures a key frame on a worker, the transcoder makes pictures of it, and the shelf keeps them in memory.
package actor PreviewDesk {
    /// Counts for monitoring.
    package struct Counters: Equatable, Sendable {
        /// Previews that were made, of key frames and of cards.
        package var made: UInt64 = 0
        /// Key frames that could not be decoded, or for which the transcoder had no room.
        package var failed: UInt64 = 0
        /// CPU time of the transcoder for previews.
        package var nanoseconds: UInt64 = 0
        /// Bytes of the pictures that are kept.
        package var bytes = 0
    }

    /// Reports of taps that the desk opened, and of jobs that it began; one for each.
    enum Event: InboxElement {
        case captured(StreamID, TapID, KeyFrameCapture.Frame?)
        /// With the card that the picture was made of; nil for a key frame.
        case made(StreamID, PreviewPicture?, of: CardRequest?, capturedAt: WallTime)

        var topic: TapID? {
            if case .captured(_, let tap, _) = self { tap } else { nil }
        }

        /// A key frame may be dropped: it may be large, and another one comes.
        ///
        /// The report that there was none is small.
        var isNeeded: Bool {
            if case .captured(_, _, .some) = self { false } else { true }
        }
    }

    /// The width of a preview, in pixels.
    private static let width: UInt16 = 360
    /// The best layer whose shorter side is not longer is tapped, in pixels.
    private static let layerHeight = 360
    /// Key frames that may wait for the desk, each of up to 2 MB.
    private static let frameLimit = 32

    private let locator: (any ResourceLocator)?
    private let transcoder: TranscoderSupervisor
    private let taps: TapNumbers
    /// Posts a command to a worker, by its index; false if the worker accepts no more.
    private let post: @Sendable (Int, WorkerCommand) -> Bool
    private let now: @Sendable () -> Moment
    private var schedule = PreviewSchedule()
    private var shelf: PreviewShelf
    /// The sources of the streams that have a picture.
    private var sources: [StreamID: ProgrammeSource] = [:]
    private var cards = PreviewCards()
    private var counted = Counters()
    private let inbox = Inbox<Event>(limit: PreviewDesk.frameLimit)
    private var listener: Task<Void, Never>?

    /// - Parameters:
    ///   - locator: makes the previews' URLs; nil where no server serves them.
    ///   - limit: bytes of pictures to keep.
    ///   - post: posts a command to a worker.
    init(
        transcoder: TranscoderSupervisor, locator: (any ResourceLocator)?, limit: Int, taps: TapNumbers,
        now: @escaping @Sendable () -> Moment, post: @escaping @Sendable (Int, WorkerCommand) -> Bool
    ) {
        self.transcoder = transcoder
        self.locator = locator
        self.taps = taps
        self.now = now
        self.post = post
        shelf = PreviewShelf(limit: limit)
    }

    /// Begins to process reports.
    /// - Parameter tell: called with each new preview.
    func start(_ tell: @escaping @Sendable (StreamID, StreamPreview) async -> Void) {
        guard listener == nil else { return }
        listener = Task { [inbox, weak self] in
            for await _ in inbox.news {
                for event in inbox.takeAll() {
                    guard let (stream, preview) = await self?.take(event) else { continue }
                    await tell(stream, preview)
                }
            }
        }
    }

    func stop() {
        listener?.cancel()
        inbox.close()
    }

    /// Counts of the reports that wait for the desk.
    package nonisolated var inboxCounters: InboxCounters { inbox.counters }

    /// A stream's latest preview; nil if none was made yet, or if it was dropped to make room for others.
    package subscript(_ stream: StreamID) -> StoredPreview? { shelf[stream] }

    /// As of now.
    package var counters: Counters {
        var result = counted
        result.bytes = shelf.byteCount
        return result
    }

    /// Takes note of the current picture of a stream.
    /// - Parameters:
    ///   - source: nil if there is no picture, or no viewer may see it.
    ///   - card: the text of the card for a stream that sends sound only; nil for none.
    func update(_ stream: StreamID, _ source: ProgrammeSource?, card: CardRequest? = nil) {
        if source != sources[stream] {
            sources[stream] = source
            shelf.setEnded(source == nil, stream)
            carryOut(schedule.setSource(source, of: stream, at: now().elapsed))
            advance()
        }
        if let card = cards.set(card, of: stream) { make(card, of: stream) }
    }

    /// Does what is due; called every second.
    func advance() {
        let time = now().elapsed
        carryOut(schedule.orders(at: time))
        for (stream, card) in cards.takeDue(at: time) { make(card, of: stream) }
    }

    /// Posts the schedule's orders to the workers.
    private func carryOut(_ orders: [PreviewSchedule.Order]) {
        for order in orders {
            switch order {
            case .open(let stream, let source, let mark, let mayAsk):
                open(stream, source, after: mark, mayAsk: mayAsk)
            case .ask(let tap, let worker): _ = post(worker, .demandKeyFrame(tap))
            case .close(let tap, let worker): _ = post(worker, .closeTap(tap))
            }
        }
    }

    /// Opens a tap that captures the next key frame.
    private func open(
        _ stream: StreamID, _ source: ProgrammeSource, after mark: TapMark?, mayAsk: Bool
    ) {
        guard let target = source.target else { return }
        let tap = taps.next()
        let capture = KeyFrameCapture { [inbox] frame in
            // If there is no room for the frame, the schedule still has to learn that the tap has ended.
            guard !inbox.put(.captured(stream, tap, frame)) else { return }
            inbox.put(.captured(stream, tap, nil))
        }
        let opening = TapOpening(
            id: tap, target: target,
            mode: .keyFrame(after: mark, mayAsk: mayAsk), maximumHeight: Self.layerHeight, sink: capture)
        schedule.began(tap, of: stream)
        // The worker accepts nothing more: the sink will not be called.
        guard !post(source.worker, .openTap(opening)) else { return }
        schedule.missed(tap, of: stream, at: now().elapsed)
    }

    /// Processes a report.
    /// - Returns: the new preview, if the report contains one.
    private func take(_ event: Event) -> (StreamID, StreamPreview)? {
        switch event {
        case .captured(let stream, let tap, let frame):
            if let source = sources[stream] { _ = post(source.worker, .closeTap(tap)) }
            guard let frame else {
                schedule.missed(tap, of: stream, at: now().elapsed)
                return nil
            }
            guard schedule.captured(tap, of: stream, frame.mark, at: now().elapsed) else { return nil }
            make(stream, frame)
            return nil
        case .made(let stream, let picture, let card, let time):
            if card == nil { schedule.made(of: stream) }
            guard let picture else {
                counted.failed &+= 1
                if let card { cards.fail(card, of: stream, at: now().elapsed) }
                return nil
            }
            return keep(picture, of: stream, at: time)
        }
    }

    /// Requests the pictures of a key frame from the transcoder.
    private func make(_ stream: StreamID, _ frame: KeyFrameCapture.Frame) {
        let request = PreviewRequest(
            source: SourceKey(.preview(sources[stream]?.session, stream)), codec: frame.codec,
            width: Self.width,
            orientation: frame.orientation, payloads: frame.payloads)
        begin(.preview, request.bytes, decoding: request.source, of: nil, for: stream)
    }

    /// Requests the picture of a card from the transcoder.
    private func make(_ card: CardRequest, of stream: StreamID) {
        begin(.card, card.bytes, decoding: nil, of: card, for: stream)
    }

    /// Starts a job, and puts its first answer into the inbox.
    /// - Parameters:
    ///   - source: whose media is decoded, for the blame if the decoder dies; nil for a card.
    ///   - card: nil for a key frame.
    private func begin(
        _ kind: JobKind, _ body: [UInt8], decoding source: SourceKey?, of card: CardRequest?,
        for stream: StreamID
    ) {
        let time = now().wall
        let answer = FirstAnswer { [inbox] picture in
            inbox.put(.made(stream, picture, of: card, capturedAt: time))
        }
        let job = transcoder.begin(kind, body, decoding: source) { event in
            switch event {
            case .report(let bytes): answer.give((try? PreviewPicture.read(bytes)).flatMap(\.self))
            case .lost, .ended: answer.give(nil)
            case .packet, .keyFrameWanted: break
            }
        }
        // The transcoder has no room, or does not run.
        if job == nil { answer.give(nil) }
    }

    /// Puts a preview on the shelf.
    private func keep(
        _ picture: PreviewPicture, of stream: StreamID, at time: WallTime
    ) -> (StreamID, StreamPreview) {
        let about = StreamPreview(
            width: Int(picture.width), height: Int(picture.height), capturedAt: time,
            blurHash: picture.blurHash, url: locator?.preview(of: stream, takenAt: time))
        shelf.store(StoredPreview(picture, about: about), of: stream)
        if sources[stream] == nil { shelf.setEnded(true, stream) }
        counted.made &+= 1
        counted.nanoseconds &+= UInt64(max(picture.cpuNanoseconds, 0))
        return (stream, about)
    }
}

/// Passes on the first of several answers: a job reports pictures and then ends, or only ends.
private final class FirstAnswer: Sendable {
    private let isGiven = Atomic(false)
    private let pass: @Sendable (PreviewPicture?) -> Void

    init(_ pass: @escaping @Sendable (PreviewPicture?) -> Void) {
        self.pass = pass
    }

    func give(_ picture: PreviewPicture?) {
        guard !isGiven.exchange(true, ordering: .relaxed) else { return }
        pass(picture)
    }
}
