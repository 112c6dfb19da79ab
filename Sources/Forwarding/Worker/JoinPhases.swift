import Base

/// How long clients of one kind took to join, from their request on.
package struct JoinPhases: Equatable, Sendable {
    /// Until the first valid connectivity check.
    package var checked = DurationHistogram(.joins)
    /// Until the end of the DTLS handshake.
    package var connected = DurationHistogram(.joins)
    /// Until the first media packet from a publisher, or to a viewer.
    package var firstMedia = DurationHistogram(.joins)

    package init() {}

    package mutating func add(_ other: JoinPhases) {
        checked.add(other.checked)
        connected.add(other.connected)
        firstMedia.add(other.firstMedia)
    }
}

/// Collects the joining times of all sessions of a worker.
final class JoinRecorder {
    enum Phase {
        case checked, connected, firstMedia
    }

    private(set) var publishers = JoinPhases()
    private(set) var viewers = JoinPhases()
    var switches = SwitchTimes()

    func note(_ phase: Phase, isPublisher: Bool, nanoseconds: Int64) {
        if isPublisher {
            Self.add(nanoseconds, phase, &publishers)
        } else {
            Self.add(nanoseconds, phase, &viewers)
        }
    }

    private static func add(_ nanoseconds: Int64, _ phase: Phase, _ phases: inout JoinPhases) {
        switch phase {
        case .checked: phases.checked.add(nanoseconds)
        case .connected: phases.connected.add(nanoseconds)
        case .firstMedia: phases.firstMedia.add(nanoseconds)
        }
    }
}

/// The progress of one session's joining.
struct JoinProgress {
    /// When the client requested the session.
    let requested: MonotonicTime
    private let isPublisher: Bool
    private let recorder: JoinRecorder
    /// When each phase was reached; nil for those to come.
    private(set) var checked: MonotonicTime?
    private(set) var connected: MonotonicTime?
    private(set) var firstMedia: MonotonicTime?

    init(requested: MonotonicTime, isPublisher: Bool, recorder: JoinRecorder) {
        self.requested = requested
        self.isPublisher = isPublisher
        self.recorder = recorder
    }

    /// Records a valid connectivity check.
    /// - Returns: whether it is the first one.
    mutating func noteCheck(at now: MonotonicTime) -> Bool {
        guard checked == nil else { return false }
        checked = now
        note(.checked, now)
        return true
    }

    mutating func noteConnection(at now: MonotonicTime) {
        connected = now
        note(.connected, now)
    }

    mutating func noteMedia(at now: MonotonicTime) {
        guard firstMedia == nil else { return }
        firstMedia = now
        note(.firstMedia, now)
    }

    private func note(_ phase: JoinRecorder.Phase, _ now: MonotonicTime) {
        recorder.note(phase, isPublisher: isPublisher, nanoseconds: now.nanoseconds(since: requested))
    }
}
