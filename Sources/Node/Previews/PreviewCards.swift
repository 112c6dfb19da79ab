import Base
import Transcoder

/// The cards that stand for the pictures of streams that send sound only.
///
/// Pure. A card is made once, and again when its text changes; one that could not be made is tried again.
struct PreviewCards {
    private struct Entry {
        let card: CardRequest
        /// When the card is to be made again; nil while it is being made, and once it is made.
        var retryAt: MonotonicTime?
    }

    /// The time until a card that could not be made is tried again.
    static let retryInterval = PreviewSchedule.interval

    private var entries: [StreamID: Entry] = [:]

    /// Sets the card of a stream; nil for none.
    /// - Returns: the card to make now; nil if there is none, or if it has been begun already.
    mutating func set(_ card: CardRequest?, of stream: StreamID) -> CardRequest? {
        guard card != entries[stream]?.card else { return nil }
        entries[stream] = card.map { Entry(card: $0) }
        return card
    }

    /// Notes that a card could not be made.
    mutating func fail(_ card: CardRequest, of stream: StreamID, at now: MonotonicTime) {
        guard entries[stream]?.card == card else { return }
        entries[stream]?.retryAt = now + Self.retryInterval
    }

    /// Returns the cards that are to be made again now, in an order that is the same in each run.
    mutating func takeDue(at now: MonotonicTime) -> [(stream: StreamID, card: CardRequest)] {
        let due = entries.filter { $0.value.retryAt.map { $0 <= now } ?? false }
        for stream in due.keys { entries[stream]?.retryAt = nil }
        return due.map { (stream: $0.key, card: $0.value.card) }
            .sorted { $0.stream.description < $1.stream.description }
    }
}
