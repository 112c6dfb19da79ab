import Base
import Dispatch
import Synchronization

/// The queue between the reading thread and the thread of a job with inputs.
final class JobInbox<Command: Sendable>: Sendable {
    /// What a job's thread has to process, in order.
    enum Item: Sendable {
        case command(Command)
        case open(InputID, SourceKey)
        case packet(InputPacket, InputID)
        case close(InputID)
        case end
    }

    private struct State {
        var items: [Item] = []
        var packets = 0
    }

    /// Most packets that wait: more than a second of 50 speakers.
    ///
    /// A thread that is further behind cannot catch up.
    private static var packetLimit: Int { 8_192 }

    private let state = Mutex(State())
    private let filled = DispatchSemaphore(value: 0)

    /// Adds an item; packets are dropped if too many wait, other items never are.
    func put(_ item: Item) {
        let isFirst = state.withLock { state in
            if case .packet = item {
                guard state.packets < Self.packetLimit else { return false }
                state.packets += 1
            }
            state.items.append(item)
            return state.items.count == 1
        }
        // One signal per batch is enough, because `take` empties the queue.
        if isFirst { filled.signal() }
    }

    /// Removes and returns all items, after waiting for the first.
    /// - Parameter nanoseconds: longest wait; 0 and less do not wait.
    func take(within nanoseconds: Int64) -> [Item] {
        let isEmpty = state.withLock { $0.items.isEmpty }
        // Also where there are items already: a signal that stays would end a later wait for nothing, and a thread that
        // is behind leaves one with every batch.
        let wait = isEmpty ? max(nanoseconds, 0) : 0
        _ = filled.wait(timeout: .now() + .nanoseconds(Int(wait)))
        return state.withLock { state in
            defer { state = State() }
            return state.items
        }
    }
}
