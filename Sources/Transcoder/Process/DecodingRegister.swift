import Base
import CSandbox
import Synchronization

/// What the transcoder decodes right now, in memory that it shares with the server.
///
/// When the process is gone, nobody is left to tell what killed it: the server reads it here. A thread holds an entry
/// while it decodes: the source, and a count that tells a decoder that is stuck from one that is busy.
package final class DecodingRegister: Sendable {
    /// What one entry says.
    package struct Entry: Equatable, Sendable {
        /// What is liable if the process dies now.
        package let source: SourceKey
        /// Of the process: which one decodes.
        package let thread: Int32
        /// CPU time that this may take, if less than usual.
        package let limit: Duration?
        /// Changes each time the entry is taken.
        package let count: UInt64

        package init(source: SourceKey, count: UInt64, thread: Int32 = 0, limit: Duration? = nil) {
            self.source = source
            self.count = count
            self.thread = thread
            self.limit = limit
        }
    }

    /// Threads that can decode at the same time; those beyond leave no trace.
    static let capacity = 64
    /// Source, count, thread, and limit in milliseconds.
    private static let words = 4
    /// Of the shared memory, in bytes.
    package static let size = capacity * words * 8

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
    /// - Parameter limit: CPU time that it may take, if less than usual.
    package func whileDecoding<Result, Failure: Error>(
        _ source: SourceKey, within limit: Duration? = nil, _ body: () throws(Failure) -> Result
    ) throws(Failure) -> Result {
        let index = taken.withLock { taken -> Int? in
            guard let free = taken.firstIndex(of: false) else { return nil }
            taken[free] = true
            return free
        }
        guard let index else { return try body() }
        let place = index * Self.words
        csandbox_store_word(memory, place + 1, csandbox_load_word(memory, place + 1) &+ 1)
        csandbox_store_word(memory, place + 2, UInt64(UInt32(bitPattern: csandbox_thread())))
        csandbox_store_word(
            memory, place + 3, limit.map { UInt64(clamping: $0.wholeNanoseconds / 1_000_000) } ?? 0)
        csandbox_store_word(memory, place, source.number &+ 1)
        defer {
            csandbox_store_word(memory, place, 0)
            taken.withLock { $0[index] = false }
        }
        return try body()
    }

    /// What is decoded at this moment, as the server sees it.
    package var entries: [Int: Entry] {
        var entries: [Int: Entry] = [:]
        for index in 0..<Self.capacity {
            let place = index * Self.words
            let source = csandbox_load_word(memory, place)
            guard source != 0 else { continue }
            let limit = csandbox_load_word(memory, place + 3)
            entries[index] = Entry(
                source: SourceKey(number: source &- 1), count: csandbox_load_word(memory, place + 1),
                thread: Int32(truncatingIfNeeded: csandbox_load_word(memory, place + 2)),
                limit: limit == 0 ? nil : .milliseconds(Int64(min(limit, 1_000_000))))
        }
        return entries
    }

    /// Forgets what the process decoded that is gone.
    package func clear() {
        for index in 0..<Self.capacity { csandbox_store_word(memory, index * Self.words, 0) }
    }
}
