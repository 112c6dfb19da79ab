import Base
import StoryFeed

/// Directives on their way to workers, in order also where several workers are concerned.
///
/// Each worker does what it is told in order, but one may be faster than another: what a viewer's newer session
/// attaches must wait until the older one, on another worker, has let go. So a fence is set on all other workers with
/// sessions of that viewer, and whatever these are to do from then on waits until the workers have passed it. Everybody
/// else goes on, and so does a viewer with one session.
struct FeedFences {
    enum Step: Equatable {
        case perform(FeedAudience.Directive, requested: MonotonicTime?)
        /// The worker is to say when it is there.
        case fence(UInt64, worker: Int)
    }

    /// Whose session a directive is for, and where that lives.
    struct Place {
        let worker: Int
        let viewer: FeedViewer
        /// Where other sessions of the viewer live, those included that are about to end.
        let others: Set<Int>
    }

    private struct Item {
        let directive: FeedAudience.Directive
        let requested: MonotonicTime?
        let place: Place
    }

    /// What one viewer's sessions are to do, in order.
    private struct Line {
        var items: [Item] = []
        /// Not passed yet; nothing is done before they are.
        var fences: Set<UInt64> = []
    }

    /// Of those who wait.
    private var lines: [FeedViewer: Line] = [:]
    private var viewers: [UInt64: FeedViewer] = [:]
    private var nextFence: UInt64 = 1
    /// Directives that wait.
    private(set) var waiting = 0

    /// Directives that wait at most; beyond it order is only kept within each worker.
    static let limit = 10_000

    /// Takes directives in.
    /// - Returns: what is to be done now, in order.
    mutating func append(
        _ directives: [FeedAudience.Directive], requested: MonotonicTime?, place: (SessionID) -> Place?
    ) -> [Step] {
        var steps: [Step] = []
        for directive in directives {
            guard let place = place(directive.session) else { continue }
            take(Item(directive: directive, requested: requested, place: place), into: &steps)
        }
        return steps
    }

    /// A worker has done everything before a fence.
    /// - Returns: what is to be done now, in order.
    mutating func pass(_ number: UInt64) -> [Step] {
        guard let viewer = viewers.removeValue(forKey: number), var line = lines[viewer] else { return [] }
        line.fences.remove(number)
        guard line.fences.isEmpty else {
            lines[viewer] = line
            return []
        }
        lines[viewer] = nil
        waiting -= line.items.count
        var steps: [Step] = []
        for (index, item) in line.items.enumerated() {
            // What it waited for is over.
            if index == 0 { perform(item, into: &steps) } else { take(item, into: &steps) }
        }
        return steps
    }

    private mutating func take(_ item: Item, into steps: inout [Step]) {
        let viewer = item.place.viewer
        guard waiting < Self.limit else { return perform(item, into: &steps) }
        if lines[viewer] == nil {
            guard case .attach = item.directive.effect,
                let line = fence(
                    item.place.others.subtracting([item.place.worker]), for: viewer, into: &steps)
            else { return perform(item, into: &steps) }
            lines[viewer] = line
        }
        lines[viewer]?.items.append(item)
        waiting += 1
    }

    private mutating func fence(_ workers: Set<Int>, for viewer: FeedViewer, into steps: inout [Step])
        -> Line?
    {
        guard !workers.isEmpty else { return nil }
        var line = Line()
        for worker in workers.sorted() {
            steps.append(.fence(nextFence, worker: worker))
            line.fences.insert(nextFence)
            viewers[nextFence] = viewer
            nextFence += 1
        }
        return line
    }

    private func perform(_ item: Item, into steps: inout [Step]) {
        steps.append(.perform(item.directive, requested: item.requested))
    }
}
