/// The other workers that a track is relayed to: each packet once, whatever they need the track for.
struct RelayReceivers {
    /// Those with viewers of the track's programme.
    private var programme: Set<Int> = []
    /// Those with slots to which control attached the track.
    private var subscribed: Set<Int> = []
    /// Each once, in ascending order.
    private(set) var all: [Int] = []

    /// Sets the workers that have viewers of the track's programme.
    mutating func setProgramme(_ workers: Set<Int>) {
        programme = workers
        update()
    }

    /// Notes whether a worker has slots to which control attached the track.
    mutating func setSubscribed(_ isSubscribed: Bool, by worker: Int) {
        if isSubscribed { subscribed.insert(worker) } else { subscribed.remove(worker) }
        update()
    }

    private mutating func update() {
        all = programme.union(subscribed).sorted()
    }
}
