import Base

/// The long-running tasks of a node, in the two groups in which they end.
struct NodeTasks {
    /// Tasks that begin things; they are canceled first.
    private var drivers: [Task<Void, Never>] = []
    /// Tasks that are notified of how things end; they go on until everything has ended.
    private var listeners: [Task<Void, Never>] = []
    /// Wakes the node for the next deadline of the feed.
    var feedTimer = FeedTimer()
    /// True from `stopDrivers` on: nothing new may begin.
    private(set) var isStopping = false

    var isEmpty: Bool { drivers.isEmpty && listeners.isEmpty }

    /// Runs `body` until the drivers stop, with a pause before each run.
    ///
    /// The pause comes on top of the time that `body` takes, so a slow run never overlaps the next one.
    mutating func repeatEvery(_ pause: Duration, _ body: @escaping @Sendable () async -> Void) {
        drivers.append(
            Task {
                while !Task.isCancelled {
                    do { try await Task.sleep(for: pause) } catch { return }
                    await body()
                }
            })
    }

    /// Calls `body` with each element of an inbox, in order, until `stopDrivers`.
    mutating func drive<Element>(
        by inbox: Inbox<Element>, _ body: @escaping @Sendable (Element) async -> Void
    ) {
        drivers.append(Self.follow(inbox, body))
    }

    /// Calls `body` with each element of an inbox until `stopDrivers`, in order within each lane; no lane waits for
    /// another.
    ///
    /// For bodies that may wait for the store or for a disk.
    mutating func drive<Element, Lane: Hashable & Sendable>(
        by inbox: Inbox<Element>, inLanes lane: @escaping @Sendable (Element) -> Lane,
        _ body: @escaping @Sendable (Element) async -> Void
    ) {
        let lanes = InboxLanes(of: inbox, by: lane)
        drivers.append(Task { await lanes.handle(body) })
    }

    /// Calls `body` with each element of an inbox until `cancelListeners`, in order within each lane; no lane waits for
    /// another.
    mutating func listen<Element, Lane: Hashable & Sendable>(
        to inbox: Inbox<Element>, inLanes lane: @escaping @Sendable (Element) -> Lane,
        _ body: @escaping @Sendable (Element) async -> Void
    ) {
        let lanes = InboxLanes(of: inbox, by: lane)
        listeners.append(Task { await lanes.handle(body) })
    }

    /// Calls `body` with each element of an inbox, in order, until `cancelListeners`.
    mutating func listen<Element>(
        to inbox: Inbox<Element>, _ body: @escaping @Sendable (Element) async -> Void
    ) {
        listeners.append(Self.follow(inbox, body))
    }

    /// Calls `body` whenever there is news, until `cancelListeners`; news that come during a call lead to one more
    /// call.
    mutating func listen(to news: AsyncStream<Void>, _ body: @escaping @Sendable () async -> Void) {
        listeners.append(Task { for await _ in news { await body() } })
    }

    private static func follow<Element>(
        _ inbox: Inbox<Element>, _ body: @escaping @Sendable (Element) async -> Void
    ) -> Task<Void, Never> {
        Task {
            for await _ in inbox.news {
                for element in inbox.takeAll() { await body(element) }
            }
        }
    }

    /// Cancels the tasks that begin things; listeners still see what has begun come to its end.
    mutating func stopDrivers() {
        isStopping = true
        for task in drivers { task.cancel() }
    }

    /// Cancels the remaining tasks and the feed's timer; comes after `stopDrivers`.
    func cancelListeners() {
        for task in listeners { task.cancel() }
        feedTimer.cancel()
    }
}
