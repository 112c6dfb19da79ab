import Glibc

/// Datagram sockets that are polled in rounds instead of being watched.
///
/// A watched socket runs its watcher's callback for each datagram, in the context of the sender. On one machine the
/// sender is the server under test, which would pay for something that no remote client costs it. poll(2) with a
/// timeout of 0 leaves no callback at a socket, and checking an empty socket costs a fraction of an unsuccessful
/// read.
struct SocketRound {
    /// Sockets polled in one call; deadlines are checked between calls.
    static let stretch = 128

    private var entries: [pollfd] = []
    private var tokens: [UInt32] = []
    /// Where the next call begins.
    private var position = 0

    mutating func append(_ descriptor: Int32, token: UInt32) {
        entries.append(pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0))
        tokens.append(token)
    }

    /// Removes a socket by moving the last one into its place.
    ///
    /// The moved socket is polled in the next round if it was not in this one.
    mutating func remove(token: UInt32) {
        guard let index = tokens.firstIndex(of: token) else { return }
        entries.swapAt(index, entries.count - 1)
        tokens.swapAt(index, tokens.count - 1)
        entries.removeLast()
        tokens.removeLast()
    }

    /// Polls the next sockets of the round, without waiting.
    /// - Parameter ready: replaced by the tokens of those that have something to read.
    /// - Returns: whether the round is complete.
    mutating func look(into ready: inout [UInt32]) -> Bool {
        ready.removeAll(keepingCapacity: true)
        let range = min(position, entries.count)..<min(position + Self.stretch, entries.count)
        let isOver = range.upperBound == entries.count
        position = isOver ? 0 : range.upperBound
        let found = unsafe entries.withUnsafeMutableBufferPointer { entries in
            unsafe entries.baseAddress.map { unsafe poll($0 + range.lowerBound, nfds_t(range.count), 0) } ?? 0
        }
        guard found > 0 else { return isOver }
        for index in range where entries[index].revents != 0 { ready.append(tokens[index]) }
        return isOver
    }
}
