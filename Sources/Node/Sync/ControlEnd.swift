/// A follower's end that is a session's control channel.
///
/// What does not fit there, because its client reads too slowly, is left out; once it has read all there was, its
/// worker says so, and it is told everything anew.
struct ControlEnd: SyncFollower {
    /// Must not block; false where the worker takes nothing any more.
    let post: @Sendable (String) -> Bool

    init(_ post: @escaping @Sendable (String) -> Bool) {
        self.post = post
    }

    func send(_ text: String) -> SyncDelivery { post(text) ? .queued : .closed }

    /// - Parameter text: nil for nothing.
    func tell(_ text: String?) {
        // A worker that takes nothing any more has no client to tell.
        if let text { _ = post(text) }
    }

    var isDrained: Bool { true }

    /// The session ends by itself.
    func close(_ reason: SyncClose) {}
}
