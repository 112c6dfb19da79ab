import Base
import Peer
import Wire

/// A pair of a session's slots, audio and video, through which it gets a stream's programme.
///
/// A player has one, for ever on the same stream; a feed session has two, which control puts on streams as its viewer
/// swipes. As a preview a seat takes no audio and the lowest layer, or the lowest temporal one of an only layer.
final class Seat {
    /// How a switch to full quality is counted.
    struct Switch {
        /// When the viewer asked for it.
        let requested: MonotonicTime
        let wasPreloaded: Bool
    }

    unowned let session: Session
    let audio: Slot?
    let video: Slot?
    /// Nil while nothing is to be shown.
    private(set) var stream: StreamID?
    private(set) var isPreview = false
    /// Until the full layer begins.
    private var awaited: Switch?
    /// Whether the stream's picture has begun to be sent.
    private var hasBegun = false

    /// - Parameter pair: counts the session's m-lines of each kind.
    init(_ pair: Int, of session: Session) {
        self.session = session
        audio = session.slots.filter { $0.plan.kind == .audio }.dropFirst(pair).first
        video = session.slots.filter { $0.plan.kind == .video }.dropFirst(pair).first
    }

    var slots: [Slot] { [audio, video].compactMap(\.self) }

    /// The slot that carries a kind, if any may now.
    func slot(_ kind: MediaKind) -> Slot? {
        if kind == .video { return video }
        return isPreview ? nil : audio
    }

    /// Height of the picture that it takes; a single pixel stands for the lowest layer.
    ///
    /// A player may have chosen its own.
    var maximumHeight: Int? {
        if session.follows != nil { return video?.maximumHeight }
        return isPreview ? 1 : nil
    }

    /// Notes what control wants.
    func reserve(_ stream: StreamID?, isPreview: Bool, requested: MonotonicTime?) {
        let wasPreloaded = stream != nil && self.stream == stream && self.isPreview
        awaited = nil
        if self.stream != stream { hasBegun = false }
        if let requested, stream != nil, !isPreview {
            awaited = Switch(requested: requested, wasPreloaded: wasPreloaded)
        }
        self.stream = stream
        self.isPreview = isPreview
    }

    /// - Returns: the stream whose picture has just begun; once.
    func takeBeginning() -> StreamID? {
        guard !hasBegun else { return nil }
        hasBegun = true
        return stream
    }

    /// - Returns: the switch that ends with what the video slot carries now; once.
    func takeSwitch() -> Switch? {
        guard !isPreview, let video, video.current != nil, video.awaited == nil else { return nil }
        defer { awaited = nil }
        return awaited
    }
}

/// How long viewers of the feed wait for a stream at its best layer.
package struct SwitchTimes: Equatable, Sendable {
    /// Of a neighbour that had been attached before.
    package var preloaded = DurationHistogram(.joins)
    /// Of a stream that was not attached.
    package var cold = DurationHistogram(.joins)

    package init() {}

    package mutating func add(_ other: SwitchTimes) {
        preloaded.add(other.preloaded)
        cold.add(other.cold)
    }

    mutating func note(_ change: Seat.Switch, at now: MonotonicTime) {
        let duration = now.nanoseconds(since: change.requested)
        if change.wasPreloaded { preloaded.add(duration) } else { cold.add(duration) }
    }
}
