import Synchronization

/// What may wait in an inbox, and what is left out of it.
package protocol InboxElement: Sendable {
    associatedtype Topic: Hashable & Sendable

    /// Of those that wait with one topic only the latest counts; nil for what each counts.
    var topic: Topic? { get }
    /// Whether nothing else would tell what it tells: it waits however many there are, so something else must bound it.
    var isNeeded: Bool { get }
}

/// What waits for an actor: in order, counted, and bounded however busy the actor is.
///
/// What says anew what waits already takes the place of the older one. Beyond the limit, what is told anew soon is
/// dropped. What nobody would tell again waits all the same: the element's type says what bounds it.
package final class Inbox<Element: InboxElement>: Sendable {
    private struct State {
        var elements: [Element] = []
        /// Where in `elements` a topic is.
        var places: [Element.Topic: Int] = [:]
        var dropped: UInt64 = 0
        var refused: UInt64 = 0
    }

    /// Of elements; those that are needed may be more.
    package let limit: Int
    /// Says that there is something to be taken, however much it is.
    package let news: AsyncStream<Void>
    private let bell: AsyncStream<Void>.Continuation
    private let state = Mutex(State())

    /// - Parameter limit: of elements; as many again may have been taken and not be dealt with yet.
    package init(limit: Int) {
        self.limit = limit
        (news, bell) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// Leaves something; does not wait.
    /// - Returns: false if it was dropped.
    @discardableResult
    package func put(_ element: Element) -> Bool {
        let (topic, isNeeded) = (element.topic, element.isNeeded)
        let (isKept, isFirst) = state.withLock { state -> (Bool, Bool) in
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
            return (true, state.elements.count == 1)
        }
        if isFirst { bell.yield() }
        return isKept
    }

    /// Everything that waits, in order.
    package func takeAll() -> [Element] {
        state.withLock { state in
            defer {
                state.elements = []
                state.places = [:]
            }
            return state.elements
        }
    }

    /// Whether there is room; for those who can refuse what would lead to more, and counted where there is none.
    package func hasRoom() -> Bool {
        state.withLock { state in
            guard state.elements.count >= limit else { return true }
            state.refused &+= 1
            return false
        }
    }

    /// Ends `news`.
    package func close() { bell.finish() }

    /// As of now.
    package var counters: InboxCounters {
        state.withLock {
            InboxCounters(waiting: $0.elements.count, dropped: $0.dropped, refused: $0.refused)
        }
    }
}

/// What is counted of an inbox.
package struct InboxCounters: Equatable, Sendable {
    /// Elements in it now.
    package var waiting = 0
    /// Elements that found no room.
    package var dropped: UInt64 = 0
    /// Requests that were refused because what they lead to has no room.
    package var refused: UInt64 = 0

    package init(waiting: Int = 0, dropped: UInt64 = 0, refused: UInt64 = 0) {
        self.waiting = waiting
        self.dropped = dropped
        self.refused = refused
    }
}
