import Glibc

/// Datagram sockets that are looked at in turns instead of being watched.
///
/// A watched socket runs its watcher's callback for each datagram, in the context of whoever sends it. On one machine
/// that is the server under test, and no client elsewhere costs a server that. poll(2) that may not wait leaves nothing
/// behind at a socket, and asks an empty one for a fraction of what a read in vain costs.
struct SocketRound {
    /// Sockets looked at in one go: deadlines wait for no more than these.
    static let stretch = 128

    private var entries: [pollfd] = []
    private var tokens: [UInt32] = []
    /// Where the next look begins.
    private var position = 0

    mutating func append(_ descriptor: Int32, token: UInt32) {
        entries.append(pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0))
        tokens.append(token)
    }

    /// Puts the last one in its place, which has its turn in the next round if it had none in this one.
    mutating func remove(token: UInt32) {
        guard let index = tokens.firstIndex(of: token) else { return }
        entries.swapAt(index, entries.count - 1)
        tokens.swapAt(index, tokens.count - 1)
        entries.removeLast()
        tokens.removeLast()
    }

    /// Finds those of the next sockets that have something to read.
    /// - Parameter ready: gets their tokens.
    /// - Returns: whether these were the last of the round.
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
