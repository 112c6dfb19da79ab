import Base
import StoryFeed

/// Directives on their way to workers, kept in order even across workers.
///
/// Each worker performs its commands in order, but one worker may be faster than another. What a viewer's newer
/// session attaches must wait until the older session, on another worker, has released it. So a fence is set on all
/// other workers that have sessions of that viewer, and further directives for these sessions wait until those
/// workers have passed it. Other viewers do not wait, nor does a viewer with a single session.
///
/// The rule without exception: no directive of a viewer is performed before an older one of theirs. However many
/// wait, a further one waits behind them. To bound them, the owner asks `hasRoom` before it lets a viewer cause more.
/// Beyond that come only those that the server causes, by new sessions and changes of streams.
struct FeedFences {
    /// What is to be done now.
    enum Step: Equatable {
        case perform(FeedAudience.Directive, requested: MonotonicTime?)
        /// Ask a worker to report when it reaches this place in its mailbox; `pass` follows.
        case fence(UInt64, worker: Int)
    }

    /// Which viewer and worker a directive concerns.
    struct Place {
        let worker: Int
        let viewer: FeedViewer
        /// The workers of the viewer's sessions, including those that are about to end.
        let others: Set<Int>
    }

    private struct Item {
        let directive: FeedAudience.Directive
        let requested: MonotonicTime?
        let place: Place
    }

    /// The directives that wait for one viewer, in order.
    private struct Line {
        var items: [Item] = []
        /// Fences that are not passed yet; the directives wait for all of them.
        var fences: Set<UInt64> = []
    }

    /// Only viewers who wait have an entry.
    private var lines: [FeedViewer: Line] = [:]
    /// Whom each open fence belongs to.
    private var viewers: [UInt64: FeedViewer] = [:]
    private var nextFence: UInt64 = 1
    /// The number of directives in all lines.
    private(set) var waiting = 0
    private let limit: Int

    /// The usual number of waiting directives from which on viewers who wait may cause no more.
    static let usualLimit = 10_000

    init(limit: Int = Self.usualLimit) { self.limit = limit }

    /// Whether a viewer may cause further directives; true for all whose directives do not wait.
    func hasRoom(for viewer: FeedViewer) -> Bool { waiting < limit || lines[viewer] == nil }

    /// Accepts new directives.
    /// - Parameter place: returns nil for a session that is gone, whose directives are dropped.
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

    /// Handles that a worker has performed everything before a fence.
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
            // The first item is the one that set the fences; the others may have to set new ones.
            if index == 0 { perform(item, into: &steps) } else { take(item, into: &steps) }
        }
        return steps
    }

    /// Performs a directive now, or queues it behind the viewer's fences.
    ///
    /// Only an attachment sets fences: it is what must not overtake a release on another worker.
    private mutating func take(_ item: Item, into steps: inout [Step]) {
        let viewer = item.place.viewer
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

    /// - Returns: nil if there is no other worker to wait for.
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
