import Base

/// Which of many things wants to be woken next.
///
/// A binary heap with lazy removal: a deadline that moved later is noticed when its old entry comes up, one that
/// moved earlier gets a second entry. Elements are named by a key that its owner checks when it is woken.
package struct DeadlineQueue<Key: Hashable> {
    private struct Entry {
        var time: MonotonicTime
        var key: Key
    }

    private var heap: [Entry] = []
    /// The earliest entry that each key has in the heap.
    private var earliest: [Key: MonotonicTime] = [:]

    package init() {}

    /// When `popDue` wants to be called next.
    package var next: MonotonicTime? { heap.first?.time }

    /// Makes sure that `key` comes up at `time` or earlier.
    package mutating func schedule(_ key: Key, at time: MonotonicTime) {
        if let known = earliest[key], known <= time { return }
        earliest[key] = time
        heap.append(Entry(time: time, key: key))
        siftUp(heap.count - 1)
    }

    /// Takes out a key whose time has come; the owner looks what it wants and schedules it anew.
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
