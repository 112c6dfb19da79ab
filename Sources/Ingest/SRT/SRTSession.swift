import Base

/// The state and timeouts of one publisher's SRT connection.
///
/// libsrt accepts the connection before the request to publish has been decided, where that takes long; data that
/// arrives until then is dropped.
package struct SRTSession: Sendable {
    /// Whether the request to publish has been decided.
    private enum Phase: Equatable {
        case asked
        case publishing
        case over
    }

    private var phase = Phase.asked
    /// When the current phase began.
    private var began: MonotonicTime
    private var lastReceived: MonotonicTime
    /// Whether the formats are known.
    private var hasMedia = false

    /// - Parameter now: when the connection was accepted.
    package init(at now: MonotonicTime) {
        began = now
        lastReceived = now
    }

    /// Whether data is accepted.
    package var isPublishing: Bool { phase == .publishing }
    /// Whether the connection is finished.
    package var isOver: Bool { phase == .over }

    /// Permits the caller to publish, and restarts both timeouts.
    package mutating func accept(at now: MonotonicTime) {
        guard phase == .asked else { return }
        phase = .publishing
        began = now
        lastReceived = now
    }

    /// Notes that data arrived; whether it is used depends on `isPublishing`.
    package mutating func receive(at now: MonotonicTime) { lastReceived = now }

    /// Notes that the formats are known.
    package mutating func noteMedia() { hasMedia = true }

    /// Ends the session.
    /// - Returns: false if it had already ended.
    package mutating func finish() -> Bool {
        defer { phase = .over }
        return phase != .over
    }

    /// When `end` has to be checked; nil once the session is over.
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

    /// The reason for ending the connection because of a timeout; nil if none has passed.
    package func end(at now: MonotonicTime) -> IngestEnd? {
        guard let deadline, now >= deadline else { return nil }
        switch phase {
        case .asked: return .timedOut
        case .publishing where now >= lastReceived + IngestTimeouts.silence: return .stalled
        case .publishing:
            return .unsupported(
                "No H.264 or AAC arrived in MPEG-TS. Set the encoder to them and its format to mpegts.")
        case .over: return nil
        }
    }
}
