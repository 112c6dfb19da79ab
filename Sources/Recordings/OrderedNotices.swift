import Base
import Synchronization

/// Tells of each stream's recordings in the order in which things happened.
///
/// A recording may end, and the next one begin, while what was before is still being told.
final class OrderedNotices: Sendable {
    /// Called when recording of a stream starts or ends, and with each part that has ended.
    typealias Listener = @Sendable (StreamID, Bool, RecordingEntry?) async -> Void

    private struct State: Sendable {
        var listener: Listener?
        /// The last notice of each stream that has not been told yet.
        var last: [StreamID: Task<Void, Never>] = [:]
    }

    private let state = Mutex(State())

    /// Sets who is told; before that, nobody is.
    func start(_ listener: @escaping Listener) { state.withLock { $0.listener = listener } }

    /// Tells of a stream once all earlier notices of it have been told, and returns after that.
    ///
    /// Isolated to the caller: elsewhere, two notices of one actor could change places on their way here.
    func tell(
        _ stream: StreamID, _ isRecording: Bool, _ entry: RecordingEntry?,
        isolation: isolated (any Actor)? = #isolation
    ) async {
        let notice = state.withLock { state in
            let notice = Task { [listener = state.listener, earlier = state.last[stream]] in
                await earlier?.value
                await listener?(stream, isRecording, entry)
            }
            state.last[stream] = notice
            return notice
        }
        await notice.value
        state.withLock { state in
            if state.last[stream] == notice { state.last[stream] = nil }
        }
    }
}
