/// A follower on a session's control channel.
///
/// Messages that find no room, because the client reads too slowly, are dropped. Once the client has read everything,
/// its worker reports that, and the client receives the complete state again.
struct ControlEnd: SyncFollower {
    /// Hands a message to the session's worker.
    ///
    /// Must not block; false if the worker accepts nothing any more.
    let post: @Sendable (String) -> Bool

    init(_ post: @escaping @Sendable (String) -> Bool) {
        self.post = post
    }

    func send(_ text: String) -> SyncDelivery { post(text) ? .queued : .closed }

    /// Sends a message.
    /// - Parameter text: nil for nothing.
    func tell(_ text: String?) {
        // A worker that accepts nothing any more has no clients left.
        if let text { _ = post(text) }
    }

    /// Always true: `send` never returns `full`, so the hub never waits for this follower.
    var isDrained: Bool { true }

    /// Does nothing: the channel ends with its session.
    func close(_ reason: SyncClose) {}
}
