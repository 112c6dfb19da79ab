import Synchronization

/// Commands on their way to a worker, from any thread, in order.
///
/// Bounded: once `capacity` commands wait, further ones are refused, so that the sender can refuse its own client.
/// Commands that release something (`isEssential`) may fill as much again, because refusing those would keep the
/// worker full.
package final class Mailbox<Command: Sendable>: Sendable {
    private struct State {
        /// In the order of posting; the worker takes all of them at once.
        var commands: [Command] = []
        var isClosed = false
        var refused: UInt64 = 0
    }

    /// Held for an append or a swap only, never while a command is performed.
    private let state = Mutex(State())
    private let capacity: Int

    /// - Parameter capacity: commands that may wait; as many essential ones again.
    package init(capacity: Int) {
        self.capacity = capacity
    }

    /// The result of posting a command.
    package enum Outcome: Equatable, Sendable {
        /// Accepted, and the first since the worker last took its commands: the sender has to wake it.
        case first
        /// Accepted behind others.
        case queued
        /// Refused because too many wait.
        case full
        /// Refused because the worker is stopping or has stopped.
        case closed
    }

    /// Appends a command, unless the mailbox is full or closed.
    /// - Parameter isEssential: lets the command exceed `capacity`, up to twice as much.
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

    /// Swaps the waiting commands with `batch`, which must be empty.
    ///
    /// Both arrays keep their allocated memory, so a batch costs no allocation, and the lock is held for the swap
    /// alone.
    /// - Returns: false once the mailbox is closed, so that `batch` holds the last commands.
    package func swap(into batch: inout [Command]) -> Bool {
        state.withLock { state in
            Swift.swap(&state.commands, &batch)
            return !state.isClosed
        }
    }

    /// Refuses all further commands; those that wait can still be taken.
    package func close() {
        state.withLock { $0.isClosed = true }
    }

    /// Commands refused because the mailbox was full.
    package var refused: UInt64 {
        state.withLock { $0.refused }
    }
}
