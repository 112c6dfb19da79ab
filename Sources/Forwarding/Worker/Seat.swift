import Base
import Peer

/// A pair of a session's slots, audio and video, that carries a stream's programme.
///
/// A player has one seat, always on the same stream. A feed session has two, which control puts on streams as its
/// viewer swipes. A preview seat carries no audio, and only the lowest layer, or the lowest temporal layer of a
/// single encoding.
final class Seat {
    /// A switch to full quality whose duration is being measured.
    struct Switch {
        /// When the viewer requested it.
        let requested: MonotonicTime
        /// Whether the seat carried the stream as a preview before.
        let wasPreloaded: Bool
    }

    unowned let session: Session
    let audio: Slot?
    let video: Slot?
    /// The stream that the seat is reserved for; nil for none.
    private(set) var stream: StreamID?
    private(set) var isPreview = false
    /// The switch being measured; nil once its layer has begun.
    private var awaited: Switch?
    /// Whether video of the stream has been sent.
    private var hasBegun = false

    /// - Parameter pair: index of the pair among the session's m-lines of each kind.
    init(_ pair: Int, of session: Session) {
        self.session = session
        audio = session.slots.filter { $0.plan.kind == .audio }.dropFirst(pair).first
        video = session.slots.filter { $0.plan.kind == .video }.dropFirst(pair).first
    }

    var slots: [Slot] { [audio, video].compactMap(\.self) }

    /// The slot for a kind; nil if there is none, and for audio in a preview.
    func slot(_ kind: MediaKind) -> Slot? {
        if kind == .video { return video }
        return isPreview ? nil : audio
    }

    /// Maximum height of the video, in pixels: 1 stands for the lowest layer, nil for the best.
    ///
    /// A player may have chosen a height.
    var maximumHeight: Int? {
        if session.follows != nil { return video?.maximumHeight }
        return isPreview ? 1 : nil
    }

    /// Reserves the seat for a stream; nil for none.
    /// - Parameter requested: when the viewer requested it; nil if the switch is not measured.
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

    /// Notes that video has begun.
    /// - Returns: the stream that has just begun; nil if it had begun before.
    func takeBeginning() -> StreamID? {
        guard !hasBegun else { return nil }
        hasBegun = true
        return stream
    }

    /// Completes the switch being measured, if the video slot carries its layer now.
    /// - Returns: the completed switch, once.
    func takeSwitch() -> Switch? {
        guard !isPreview, let video, video.current != nil, video.awaited == nil else { return nil }
        defer { awaited = nil }
        return awaited
    }
}

/// How long viewers of the feed wait for a stream in full quality.
package struct SwitchTimes: Equatable, Sendable {
    /// For a neighbour, which was attached before.
    package var preloaded = DurationHistogram(.joins)
    /// For a stream that was not attached.
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
