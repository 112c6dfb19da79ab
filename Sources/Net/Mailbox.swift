import Synchronization

/// Commands on their way to a worker, from any thread, in order.
///
/// Bounded: beyond `capacity` commands the newest are refused, so that the sender learns of it and can say no to its
/// own client. Commands that take something away (`isEssential`) may fill as much again, since refusing those would
/// keep the worker full.
package final class Mailbox<Command: Sendable>: Sendable {
    private struct State {
        var commands: [Command] = []
        var isClosed = false
        var refused: UInt64 = 0
    }

    private let state = Mutex(State())
    private let capacity: Int

    package init(capacity: Int) {
        self.capacity = capacity
    }

    /// What became of a command.
    package enum Outcome: Equatable, Sendable {
        /// Taken, and the first since the worker last looked: wake it.
        case first
        case queued
        case full
        case closed
    }

    /// - Parameter isEssential: may fill as much again as `capacity`.
    package func post(_ command: Command, isEssential: Bool = false) -> Outcome {
        state.withLock { state in
            guard !state.isClosed else { return .closed }
            let limit = isEssential ? capacity * 2 : capacity
            guard state.commands.count < limit else {
                state.refused &+= 1
                return .full
            }
            state.commands.append(command)
            return state.commands.count == 1 ? .first : .queued
        }
    }

    /// Swaps what has come with `batch`, which must be empty; the two arrays keep their room, so nothing is allocated.
    /// - Returns: false once the mailbox is closed and this was the last of it.
    package func swap(into batch: inout [Command]) -> Bool {
        state.withLock { state in
            Swift.swap(&state.commands, &batch)
            return !state.isClosed
        }
    }

    /// Refuses all further commands.
    package func close() {
        state.withLock { $0.isClosed = true }
    }

    /// Commands refused because the mailbox was full.
    package var refused: UInt64 {
        state.withLock { $0.refused }
    }
}
