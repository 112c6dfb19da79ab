import Base

/// How far a publisher by SRT has come, and how long it may say nothing.
///
/// It is connected before whoever decides has decided, where that takes long; what comes until then is left out.
package struct SRTSession: Sendable {
    private enum Phase: Equatable {
        case asked
        case publishing
        case over
    }

    private var phase = Phase.asked
    private var began: MonotonicTime
    private var lastReceived: MonotonicTime
    /// Whether what it sends is known.
    private var hasMedia = false

    package init(at now: MonotonicTime) {
        began = now
        lastReceived = now
    }

    package var isPublishing: Bool { phase == .publishing }
    package var isOver: Bool { phase == .over }

    /// It may publish.
    package mutating func accept(at now: MonotonicTime) {
        guard phase == .asked else { return }
        phase = .publishing
        began = now
        lastReceived = now
    }

    /// Notes that something came, which is to be taken in if it publishes.
    package mutating func receive(at now: MonotonicTime) { lastReceived = now }

    /// What it sends is known.
    package mutating func noteMedia() { hasMedia = true }

    /// - Returns: whether it was not over yet.
    package mutating func finish() -> Bool {
        defer { phase = .over }
        return phase != .over
    }

    /// When `end` may have something to say.
    package var deadline: MonotonicTime? {
        switch phase {
        case .asked: began + IngestTimeouts.join
        case .publishing:
            hasMedia
                ? lastReceived + IngestTimeouts.silence
                : min(lastReceived + IngestTimeouts.silence, began + IngestTimeouts.join)
        case .over: nil
        }
    }

    /// Why it ends by now; nil where it does not.
    package func end(at now: MonotonicTime) -> IngestEnd? {
        guard let deadline, now >= deadline else { return nil }
        switch phase {
        case .asked: return .timedOut
        case .publishing where now >= lastReceived + IngestTimeouts.silence: return .stalled
        case .publishing:
            return .unsupported(
                "Neither H.264 nor AAC came in MPEG-TS: set the encoder to these, and its format to mpegts.")
        case .over: return nil
        }
    }
}
