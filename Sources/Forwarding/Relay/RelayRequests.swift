import Base

/// What a worker has asked other workers to relay.
///
/// A copy of a track is useful to a new viewer only while nothing of it is missing. Viewers come and go. With a
/// complete copy the next one begins immediately with the cached group of pictures, instead of waiting for a key
/// frame. So what no viewer on this worker uses any more lingers: it is still relayed for a while.
struct RelayRequests {
    enum Subject: Hashable {
        /// A stream's programme, from whichever worker has its publisher.
        case programme(StreamID)
        /// A single track, from its publisher's worker.
        case track(TrackKey)
    }

    /// How long relaying continues after the last use.
    static let lingeringTime = Duration.seconds(10)
    private static let interval = Duration.seconds(1)

    /// When relaying ends of what lingers.
    private(set) var lingering: [Subject: MonotonicTime] = [:]
    /// When overdue ones were last looked for.
    private var looked = MonotonicTime.zero
    /// Nil for a node with a single worker, where nothing is relayed.
    private let links: WorkerLinks?

    init(over links: WorkerLinks?) {
        self.links = links
    }

    /// Requests something for its first use here; tells nobody if it lingers, because then it is still relayed.
    mutating func begin(_ subject: Subject) {
        guard lingering.removeValue(forKey: subject) == nil else { return }
        tell(subject, isNeeded: true)
    }

    /// Lets something linger whose last use here has ended.
    mutating func letLinger(_ subject: Subject, at now: MonotonicTime) {
        guard links != nil else { return }
        lingering[subject] = now + Self.lingeringTime
    }

    func isLingering(_ subject: Subject) -> Bool { lingering[subject] != nil }

    /// What has lingered long enough and has to be ended; looks once a second.
    ///
    /// Sorted, so that the order does not depend on hashing.
    mutating func overdue(at now: MonotonicTime) -> [Subject] {
        guard !lingering.isEmpty, now >= looked + Self.interval else { return [] }
        looked = now
        return lingering.filter { $0.value <= now }.keys.sorted()
    }

    /// Makes other workers stop relaying what lingers.
    mutating func end(_ subject: Subject) {
        guard lingering.removeValue(forKey: subject) != nil else { return }
        tell(subject, isNeeded: false)
    }

    private func tell(_ subject: Subject, isNeeded: Bool) {
        switch subject {
        case .programme(let stream): links?.tellAll(.want(stream, isNeeded))
        case .track(let key): links?.tell(.subscribe(key.track, isNeeded), to: key.worker)
        }
    }
}

extension RelayRequests.Subject: Comparable {
    /// Programmes by their streams' names, then tracks by worker and number.
    static func < (first: Self, second: Self) -> Bool {
        switch (first, second) {
        case (.programme(let first), .programme(let second)): first.description < second.description
        case (.track(let first), .track(let second)):
            (first.worker, first.track.number) < (second.worker, second.track.number)
        case (.programme, .track): true
        case (.track, .programme): false
        }
    }
}
