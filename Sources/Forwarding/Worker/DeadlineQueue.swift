import Base

/// Finds the next of many deadlines.
///
/// A binary heap with lazy removal. A deadline that moved later is noticed when its old entry comes up; one that
/// moved earlier gets a second entry. A key stands for its owner, who checks when it is woken what is really due.
package struct DeadlineQueue<Key: Hashable> {
    private struct Entry {
        var time: MonotonicTime
        var key: Key
    }

    private var heap: [Entry] = []
    /// The earliest entry that each key has in the heap.
    private var earliest: [Key: MonotonicTime] = [:]

    package init() {}

    /// When `popDue` should run next; nil if nothing is scheduled.
    package var next: MonotonicTime? { heap.first?.time }

    /// Schedules `key` for `time`, unless it is scheduled earlier already.
    package mutating func schedule(_ key: Key, at time: MonotonicTime) {
        if let known = earliest[key], known <= time { return }
        earliest[key] = time
        heap.append(Entry(time: time, key: key))
        siftUp(heap.count - 1)
    }

    /// Removes a key that is due; its owner checks what is due, and schedules it again.
    package mutating func popDue(at now: MonotonicTime) -> Key? {
        while let first = heap.first, first.time <= now {
            let last = heap.removeLast()
            if !heap.isEmpty {
                heap[0] = last
                siftDown()
            }
            guard earliest[first.key] == first.time else { continue }
            earliest[first.key] = nil
            return first.key
        }
        return nil
    }

    private mutating func siftUp(_ start: Int) {
        var child = start
        while child > 0 {
            let parent = (child - 1) / 2
            guard heap[child].time < heap[parent].time else { return }
            heap.swapAt(child, parent)
            child = parent
        }
    }

    private mutating func siftDown() {
        var parent = 0
        while true {
            var smallest = parent
            for child in [2 * parent + 1, 2 * parent + 2]
            where child < heap.count && heap[child].time < heap[smallest].time { smallest = child }
            guard smallest != parent else { return }
            heap.swapAt(parent, smallest)
            parent = smallest
        }
    }
}
