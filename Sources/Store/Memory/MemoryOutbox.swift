import Base

/// The outbox of a `MemoryStore`, with the same rules as `OutboxTables`.
struct MemoryOutbox: Sendable {
    private struct LaneName: Hashable {
        let receiver: String
        let stream: StreamID
    }

    /// Events of one receiver and stream; exists only while it has some.
    private struct Lane {
        /// In the order of their commits.
        var entries: [(number: Int64, event: OutboxEvent)] = []
        /// Failed attempts to deliver the first event.
        var attempts = 0
        /// When the first event is due, in milliseconds since 1970; 0 for immediately.
        var dueAt: Int64 = 0
    }

    private let limits: OutboxLimits
    private var receivers: [String] = []
    private var lanes: [LaneName: Lane] = [:]
    /// The lane of each event, by the event's number.
    private var names: [Int64: LaneName] = [:]
    /// The next event's number.
    private var next: Int64 = 1
    private(set) var dropped: UInt64 = 0

    init(limits: OutboxLimits) {
        self.limits = limits
    }

    /// Events that wait.
    var count: Int { names.count }

    mutating func setReceivers(_ receivers: [String]) {
        self.receivers = receivers
        for name in lanes.keys where !receivers.contains(name.receiver) { removeLane(name) }
    }

    mutating func append(_ events: [OutboxEvent], of stream: StreamID) {
        for event in events {
            for receiver in receivers {
                let name = LaneName(receiver: receiver, stream: stream)
                guard makeRoom(for: event, in: name) else {
                    dropped += 1
                    continue
                }
                if names.count >= limits.total, let oldest = names.min(by: { $0.key < $1.key }) {
                    removeHead(of: oldest.value)
                }
                lanes[name, default: Lane()].entries.append((next, event))
                names[next] = name
                next += 1
            }
        }
    }

    /// Drops an event of the lane if the lane is full.
    /// - Returns: false if the lane is full of events that matter more than this one.
    private mutating func makeRoom(for event: OutboxEvent, in name: LaneName) -> Bool {
        guard let lane = lanes[name], lane.entries.count >= limits.lane else { return true }
        if let passing = lane.entries.first(where: { $0.event.isPassing }) {
            remove(passing.number, from: name)
            dropped += 1
        } else if event.isPassing {
            return false
        } else {
            removeHead(of: name)
        }
        return true
    }

    func due(for receiver: String, at now: Int64, limit: Int) -> [Delivery] {
        let horizon = OutboxLimits.horizon(at: now)
        let ready = lanes.filter { name, lane in
            name.receiver == receiver && (lane.dueAt <= now || lane.dueAt > horizon)
        }
        let due = ready.sorted { left, right in
            (left.value.dueAt, left.value.entries.first?.number ?? 0)
                < (right.value.dueAt, right.value.entries.first?.number ?? 0)
        }
        return due.prefix(max(limit, 0)).compactMap { name, lane in
            lane.entries.first.map { entry in
                Delivery(
                    number: entry.number, receiver: name.receiver, stream: name.stream, event: entry.event,
                    attempts: lane.attempts)
            }
        }
    }

    func nextDue(for receiver: String, after now: Int64) -> Int64? {
        lanes.filter { $0.key.receiver == receiver && $0.value.dueAt > now }.map(\.value.dueAt).min()
    }

    mutating func settle(_ outcome: DeliveryOutcome) {
        switch outcome {
        case .delivered(let number):
            if let name = names[number] { remove(number, from: name) }
        case .dropped(let number):
            guard let name = names[number] else { return }
            remove(number, from: name)
            dropped += 1
        case .failed(let number, let time):
            guard let name = names[number], lanes[name]?.entries.first?.number == number else { return }
            lanes[name]?.attempts += 1
            lanes[name]?.dueAt = time
        case .gone(let receiver):
            receivers.removeAll { $0 == receiver }
            for name in lanes.keys where name.receiver == receiver { removeLane(name) }
        }
    }

    mutating func drop(committedBefore time: Int64) -> Int {
        let old = lanes.flatMap { name, lane in
            lane.entries.filter { $0.event.committedAt < time }.map { ($0.number, name) }
        }
        for (number, name) in old { remove(number, from: name) }
        dropped += UInt64(old.count)
        return old.count
    }

    /// Deletes an event; if it was the first of its lane, the next one is due immediately.
    private mutating func remove(_ number: Int64, from name: LaneName) {
        names[number] = nil
        guard var lane = lanes[name] else { return }
        if lane.entries.first?.number == number {
            lane.attempts = 0
            lane.dueAt = 0
        }
        lane.entries.removeAll { $0.number == number }
        lanes[name] = lane.entries.isEmpty ? nil : lane
    }

    /// Drops the first event of a lane.
    private mutating func removeHead(of name: LaneName) {
        guard let head = lanes[name]?.entries.first else { return }
        remove(head.number, from: name)
        dropped += 1
    }

    /// Drops all events of a lane.
    private mutating func removeLane(_ name: LaneName) {
        guard let lane = lanes.removeValue(forKey: name) else { return }
        for entry in lane.entries { names[entry.number] = nil }
        dropped += UInt64(lane.entries.count)
    }
}
