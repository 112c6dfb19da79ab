import Synchronization

/// Handles the elements of an inbox in lanes: one after another within a lane, while no lane waits for another.
///
/// For elements whose handling may wait, such as for a disk, and whose order matters only among those of the same
/// connection or stream. Elements of a lane that is being handled stay in the inbox: its limit applies to them, and a
/// later element still replaces an earlier one with the same topic.
package final class InboxLanes<Element: InboxElement, Lane: Hashable & Sendable>: Sendable {
    private let inbox: Inbox<Element>
    private let lane: @Sendable (Element) -> Lane
    /// The lanes with elements that were taken and are not handled yet.
    private let busy = Mutex<Set<Lane>>([])

    /// - Parameter lane: the lane of an element; always the same for elements with the same topic.
    package init(of inbox: Inbox<Element>, by lane: @escaping @Sendable (Element) -> Lane) {
        self.inbox = inbox
        self.lane = lane
    }

    /// Calls `body` with each element until the task is canceled or the inbox is closed, and returns once the last call
    /// has returned.
    package func handle(_ body: @escaping @Sendable (Element) async -> Void) async {
        await withDiscardingTaskGroup { group in
            for await _ in inbox.news {
                for (lane, elements) in take() {
                    group.addTask { [self] in
                        for element in elements { await body(element) }
                        release(lane)
                    }
                }
            }
        }
    }

    /// Takes the elements of the lanes that are free, and marks these lanes as busy.
    private func take() -> [(lane: Lane, elements: [Element])] {
        // A lane that is released meanwhile is taken in the next turn, which `release` announces.
        let taken = busy.withLock { $0 }
        var order: [Lane] = []
        var elements: [Lane: [Element]] = [:]
        for element in inbox.take(where: { !taken.contains(lane($0)) }) {
            let key = lane(element)
            if elements[key] == nil { order.append(key) }
            elements[key, default: []].append(element)
        }
        busy.withLock { [order] in $0.formUnion(order) }
        return order.map { ($0, elements[$0] ?? []) }
    }

    private func release(_ lane: Lane) {
        busy.withLock { _ = $0.remove(lane) }
        inbox.announce()
    }
}
