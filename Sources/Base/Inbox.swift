import Synchronization

/// An element of an inbox, and the rules by which it may be replaced or dropped.
package protocol InboxElement: Sendable {
    associatedtype Topic: Hashable & Sendable

    /// Of the waiting elements with the same topic, only the latest is kept; nil keeps each.
    var topic: Topic? { get }
    /// Whether the element must not be dropped, because nothing would report the same later.
    ///
    /// It is kept even beyond the limit, so something else must bound the number of such elements.
    var isNeeded: Bool { get }
}

/// A queue for an actor: ordered, counted, and bounded however busy the actor is.
///
/// An element replaces a waiting one with the same topic, in its place. Beyond the limit, elements are dropped if
/// their contents will be reported again soon. Elements that nothing would report again are kept; their type
/// documents what bounds them.
package final class Inbox<Element: InboxElement>: Sendable {
    /// Elements and counters, guarded by the lock.
    ///
    /// It is held for an append or a swap only, so posting threads hardly wait.
    private struct State {
        var elements: [Element] = []
        /// Index in `elements` by topic.
        var places: [Element.Topic: Int] = [:]
        /// Whether `news` has yielded since elements were last taken.
        var isAnnounced = false
        var dropped: UInt64 = 0
        var refused: UInt64 = 0
    }

    /// Elements that may wait; needed ones may exceed it.
    package let limit: Int
    /// Yields once when there is something to take, whatever the number of elements; for the actor's loop.
    package let news: AsyncStream<Void>
    private let bell: AsyncStream<Void>.Continuation
    private let state = Mutex(State())

    /// - Parameter limit: elements that may wait. As many again may have been taken and not processed yet.
    package init(limit: Int) {
        self.limit = limit
        (news, bell) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// Appends an element or replaces one with its topic; does not wait.
    /// - Returns: false if the element was dropped.
    @discardableResult
    package func put(_ element: Element) -> Bool {
        let (topic, isNeeded) = (element.topic, element.isNeeded)
        let (isKept, isNews) = state.withLock { state -> (Bool, Bool) in
            if let topic, let place = state.places[topic] {
                state.elements[place] = element
                return (true, false)
            }
            guard isNeeded || state.elements.count < limit else {
                state.dropped &+= 1
                return (false, false)
            }
            if let topic { state.places[topic] = state.elements.count }
            state.elements.append(element)
            defer { state.isAnnounced = true }
            return (true, !state.isAnnounced)
        }
        // Once until the actor takes elements: it takes all that it can handle, so one wake-up suffices.
        if isNews { bell.yield() }
        return isKept
    }

    /// Takes everything that waits, in order.
    package func takeAll() -> [Element] {
        state.withLock { state in
            defer {
                state.elements = []
                state.places = [:]
                state.isAnnounced = false
            }
            return state.elements
        }
    }

    /// Takes the waiting elements that can be handled now, in order; the others stay, in order.
    ///
    /// `news` does not yield for those that stay: call `announce` once they can be handled.
    package func take(where isReady: (Element) -> Bool) -> [Element] {
        state.withLock { state in
            var taken: [Element] = []
            var left: [Element] = []
            for element in state.elements {
                if isReady(element) { taken.append(element) } else { left.append(element) }
            }
            state.elements = left
            state.places = [:]
            for (place, element) in left.enumerated() {
                if let topic = element.topic { state.places[topic] = place }
            }
            state.isAnnounced = false
            return taken
        }
    }

    /// Makes `news` yield once more, because elements that `take(where:)` left can be handled now.
    package func announce() { bell.yield() }

    /// Whether there is room for another element.
    ///
    /// For callers that can refuse a request which would lead to more elements; a lack of room is counted as a
    /// refusal.
    package func hasRoom() -> Bool {
        state.withLock { state in
            guard state.elements.count >= limit else { return true }
            state.refused &+= 1
            return false
        }
    }

    /// Ends `news`, and so the loop that consumes it.
    package func close() { bell.finish() }

    /// The counters as of now.
    package var counters: InboxCounters {
        state.withLock {
            InboxCounters(waiting: $0.elements.count, dropped: $0.dropped, refused: $0.refused)
        }
    }
}

/// Counters of an inbox.
package struct InboxCounters: Equatable, Sendable {
    /// Elements that wait now.
    package var waiting = 0
    /// Elements dropped because there was no room.
    package var dropped: UInt64 = 0
    /// Requests refused because there was no room for their consequences.
    package var refused: UInt64 = 0

    /// Counters with these values.
    package init(waiting: Int = 0, dropped: UInt64 = 0, refused: UInt64 = 0) {
        self.waiting = waiting
        self.dropped = dropped
        self.refused = refused
    }
}
