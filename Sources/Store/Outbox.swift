import Base

/// Webhooks on their way to their receivers, which outlive a restart.
///
/// One lane for each receiver and stream: within it, events are delivered one after another in the order of their
/// commits. An event leaves the outbox when it is settled. All times are milliseconds since 1970.
package protocol Outbox: Sendable {
    /// Chooses the receivers: every event committed from now on is kept once for each, and what waits for others is
    /// dropped. None by default.
    func setReceivers(_ receivers: [String]) async throws(StoreError)

    /// The first event of each of the receiver's lanes that is due, the longest due first.
    func due(for receiver: String, at now: Int64, limit: Int) async throws(StoreError) -> [Delivery]

    /// When the next of the receiver's lanes becomes due that is not due yet; nil if there is none.
    func nextDue(for receiver: String, after now: Int64) async throws(StoreError) -> Int64?

    /// Says what became of deliveries.
    func settle(_ outcomes: [DeliveryOutcome]) async throws(StoreError)

    /// Drops events committed before `time`.
    /// - Returns: how many were dropped.
    @discardableResult
    func drop(committedBefore time: Int64) async throws(StoreError) -> Int

    /// An element after commits with events; several may be told of by one.
    var changes: AsyncStream<Void> { get }
}

/// One thing that happened, to be told to every receiver.
package struct OutboxEvent: Sendable, Equatable {
    /// Unique for ever, so that receivers can tell a repetition.
    package let id: String
    /// As in `stream.live`.
    package let type: String
    /// In milliseconds since 1970.
    package let committedAt: Int64
    /// What is sent, byte for byte.
    package let body: [UInt8]

    package init(id: String, type: String, committedAt: Int64, body: [UInt8]) {
        self.id = id
        self.type = type
        self.committedAt = committedAt
        self.body = body
    }

    /// Types of events that anybody brings about at will, and nobody acts upon alone: that somebody came, or went.
    static let passingTypes = ["participant.joined", "participant.left"]

    var isPassing: Bool { Self.passingTypes.contains(type) }
}

/// An event on its way to one receiver.
package struct Delivery: Sendable, Equatable {
    /// Names it within the outbox; higher means later.
    package let number: Int64
    /// Its URL.
    package let receiver: String
    /// Which of the receiver's lanes it is in.
    package let stream: StreamID
    /// The same for each receiver, `id` included.
    package let event: OutboxEvent
    /// Tries that failed before.
    package let attempts: Int

    package init(number: Int64, receiver: String, stream: StreamID, event: OutboxEvent, attempts: Int) {
        self.number = number
        self.receiver = receiver
        self.stream = stream
        self.event = event
        self.attempts = attempts
    }
}

/// What became of a delivery.
package enum DeliveryOutcome: Sendable, Equatable {
    case delivered(Int64)
    /// Not delivered, and to be tried again.
    case failed(Int64, nextAttemptAt: Int64)
    /// Not delivered, and given up.
    case dropped(Int64)
    /// The receiver wants nothing any more: all that waits for it is dropped, and nothing is kept for it.
    case gone(String)
}
