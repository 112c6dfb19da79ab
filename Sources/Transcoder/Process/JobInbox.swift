import Base
import Dispatch
import Synchronization

/// What waits for the thread of a job that has inputs.
final class JobInbox<Command: Sendable>: Sendable {
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

    /// More than a second of 50 speakers' packets: what a thread that is so far behind cannot make up for.
    private static var packetLimit: Int { 8_192 }

    private let state = Mutex(State())
    private let filled = DispatchSemaphore(value: 0)

    /// Packets that find no room are dropped.
    func put(_ item: Item) {
        let isFirst = state.withLock { state in
            if case .packet = item {
                guard state.packets < Self.packetLimit else { return false }
                state.packets += 1
            }
            state.items.append(item)
            return state.items.count == 1
        }
        if isFirst { filled.signal() }
    }

    /// Waits until something is there, at most so long.
    func take(within nanoseconds: Int64) -> [Item] {
        let isEmpty = state.withLock { $0.items.isEmpty }
        if isEmpty, nanoseconds > 0 { _ = filled.wait(timeout: .now() + .nanoseconds(Int(nanoseconds))) }
        return state.withLock { state in
            defer { state = State() }
            return state.items
        }
    }
}
