import Base

/// Webhooks on their way to their receivers, which survive a restart.
///
/// There is one lane for each receiver and stream. Within a lane, events are delivered one after another in the order
/// of their commits, so a receiver that fails delays only its own lanes. An event leaves the outbox when it is settled.
/// All times are milliseconds since 1970.
package protocol Outbox: Sendable {
    /// Sets the receivers; there are none by default.
    ///
    /// Every event committed from now on is kept once for each of them. Events that wait for other receivers are
    /// dropped.
    func setReceivers(_ receivers: [String]) async throws(StoreError)

    /// The first event of each lane of the receiver that is due, ordered by the time since which it is.
    ///
    /// Last come lanes whose time is further away than any delay: the clock has been set back since.
    func due(for receiver: String, at now: Int64, limit: Int) async throws(StoreError) -> [Delivery]

    /// When the next lane of the receiver that is not due yet becomes due; nil if there is none.
    func nextDue(for receiver: String, after now: Int64) async throws(StoreError) -> Int64?

    /// Records the outcomes of deliveries.
    func settle(_ outcomes: [DeliveryOutcome]) async throws(StoreError)

    /// Drops events committed before `time`.
    /// - Returns: how many were dropped.
    @discardableResult
    func drop(committedBefore time: Int64) async throws(StoreError) -> Int

    /// Yields an element after commits with events; one element may stand for several commits.
    var changes: AsyncStream<Void> { get }
}

/// An event to be delivered to every receiver.
package struct OutboxEvent: Sendable, Equatable {
    /// Globally unique, so that receivers can recognize a repeated delivery.
    package let id: String
    /// Such as `stream.live`.
    package let type: String
    /// In milliseconds since 1970.
    package let committedAt: Int64
    /// The body of the request, byte for byte.
    package let body: [UInt8]

    package init(id: String, type: String, committedAt: Int64, body: [UInt8]) {
        self.id = id
        self.type = type
        self.committedAt = committedAt
        self.body = body
    }

    /// Types of events that clients can cause in any number, and that are worth little alone: a participant joined or
    /// left.
    static let passingTypes = ["participant.joined", "participant.left"]

    /// Whether a full lane drops this event before others.
    var isPassing: Bool { Self.passingTypes.contains(type) }
}

/// An event to be delivered to one receiver.
package struct Delivery: Sendable, Equatable {
    /// Unique within the outbox, and ascending in the order of commits.
    package let number: Int64
    /// The receiver's URL.
    package let receiver: String
    /// The lane, together with the receiver.
    package let stream: StreamID
    /// The same for every receiver, including `id`.
    package let event: OutboxEvent
    /// Attempts that have failed so far.
    package let attempts: Int

    package init(number: Int64, receiver: String, stream: StreamID, event: OutboxEvent, attempts: Int) {
        self.number = number
        self.receiver = receiver
        self.stream = stream
        self.event = event
        self.attempts = attempts
    }
}

/// The outcome of a delivery, by the delivery's number.
package enum DeliveryOutcome: Sendable, Equatable {
    case delivered(Int64)
    /// Not delivered; the lane pauses until the time of the next attempt.
    case failed(Int64, nextAttemptAt: Int64)
    /// Not delivered, and given up.
    case dropped(Int64)
    /// The receiver, by its URL, wants no more webhooks: everything that waits for it is dropped, and nothing more is
    /// kept for it.
    case gone(String)
}
