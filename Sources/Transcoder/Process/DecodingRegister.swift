import CSandbox
import Synchronization

/// What the transcoder decodes right now, in memory that it shares with the server.
///
/// When the process is gone, nobody is left to tell what killed it: the server reads it here. A thread holds an entry
/// while it decodes: the source, and a count that tells a decoder that is stuck from one that is busy.
package final class DecodingRegister: Sendable {
    /// What one entry says.
    package struct Entry: Equatable, Sendable {
        package let source: SourceKey
        /// Changes each time the entry is taken.
        package let count: UInt64
    }

    /// Threads that can decode at the same time; those beyond leave no trace.
    static let capacity = 64
    package static let size = capacity * 2 * 8

    private let memory: UInt
    private let taken = Mutex([Bool](repeating: false, count: capacity))

    /// - Returns: nil if the memory cannot be mapped.
    package init?(descriptor: Int32) {
        memory = csandbox_map(descriptor, Self.size)
        guard memory != 0 else { return nil }
    }

    deinit {
        csandbox_unmap(memory, Self.size)
    }

    /// Decodes in the transcoder; `body` is what may kill the process.
    package func whileDecoding<Result>(_ source: SourceKey, _ body: () throws -> Result) rethrows -> Result {
        let index = taken.withLock { taken -> Int? in
            guard let free = taken.firstIndex(of: false) else { return nil }
            taken[free] = true
            return free
        }
        guard let index else { return try body() }
        csandbox_store_word(memory, index * 2 + 1, csandbox_load_word(memory, index * 2 + 1) &+ 1)
        csandbox_store_word(memory, index * 2, source.number &+ 1)
        defer {
            csandbox_store_word(memory, index * 2, 0)
            taken.withLock { $0[index] = false }
        }
        return try body()
    }

    /// What is decoded at this moment, as the server sees it.
    package var entries: [Int: Entry] {
        var entries: [Int: Entry] = [:]
        for index in 0..<Self.capacity {
            let source = csandbox_load_word(memory, index * 2)
            guard source != 0 else { continue }
            entries[index] = Entry(
                source: SourceKey(number: source &- 1), count: csandbox_load_word(memory, index * 2 + 1))
        }
        return entries
    }

    /// Forgets what the process decoded that is gone.
    package func clear() {
        for index in 0..<Self.capacity { csandbox_store_word(memory, index * 2, 0) }
    }
}
