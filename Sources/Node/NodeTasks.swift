import Base

/// What a node does until it stops.
struct NodeTasks {
    /// What begins things, and so ends first.
    private var drivers: [Task<Void, Never>] = []
    /// What hears of how things end.
    private var listeners: [Task<Void, Never>] = []
    /// Of the feed.
    var feedTimer = FeedTimer()
    /// Nothing new is begun any more.
    private(set) var isStopping = false

    var isEmpty: Bool { drivers.isEmpty && listeners.isEmpty }

    /// Does something again and again, with a pause before each.
    mutating func repeatEvery(_ pause: Duration, _ body: @escaping @Sendable () async -> Void) {
        drivers.append(
            Task {
                while !Task.isCancelled {
                    do { try await Task.sleep(for: pause) } catch { return }
                    await body()
                }
            })
    }

    /// Does something with each element of an inbox, in order; see `stopDrivers`.
    mutating func drive<Element>(
        by inbox: Inbox<Element>, _ body: @escaping @Sendable (Element) async -> Void
    ) {
        drivers.append(Self.follow(inbox, body))
    }

    /// Does something with each element of an inbox, in order; see `cancelListeners`.
    mutating func listen<Element>(
        to inbox: Inbox<Element>, _ body: @escaping @Sendable (Element) async -> Void
    ) {
        listeners.append(Self.follow(inbox, body))
    }

    /// Does something whenever there is news.
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

    /// Begins nothing any more; what has begun still ends in order.
    mutating func stopDrivers() {
        isStopping = true
        for task in drivers { task.cancel() }
    }

    func cancelListeners() {
        for task in listeners { task.cancel() }
        feedTimer.cancel()
    }
}
