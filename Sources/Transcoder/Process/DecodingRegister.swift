import Base
import CSandbox
import Synchronization

/// Records what the transcoder is decoding, in memory shared with the server.
///
/// After a crash the process cannot report what caused it, so the server reads it here. A thread occupies an entry
/// while it decodes: the source, and a count that distinguishes a stuck decoder from a busy one.
package final class DecodingRegister: Sendable {
    /// One entry: a thread that is decoding.
    package struct Entry: Equatable, Sendable {
        /// Blamed if the process dies now.
        package let source: SourceKey
        /// The kernel's ID of the decoding thread.
        package let thread: Int32
        /// Permitted CPU time if it is below the usual limit; nil for the usual limit.
        package let limit: Duration?
        /// Incremented each time the entry is occupied.
        package let count: UInt64

        package init(source: SourceKey, count: UInt64, thread: Int32 = 0, limit: Duration? = nil) {
            self.source = source
            self.count = count
            self.thread = thread
            self.limit = limit
        }
    }

    /// Most threads that decode at the same time; further ones leave no record.
    static let capacity = 64
    /// Words of an entry: source, count, thread, and limit in milliseconds.
    private static let words = 4
    /// Size of the shared memory, in bytes.
    package static let size = capacity * words * 8

    /// Address of the shared memory in this process.
    private let memory: UInt
    /// Entries in use; only the transcoder occupies entries.
    private let taken = Mutex([Bool](repeating: false, count: capacity))

    /// Maps the shared memory.
    /// - Parameter descriptor: of the memory; both processes map the same one.
    /// - Returns: nil if it cannot be mapped.
    package init?(descriptor: Int32) {
        memory = csandbox_map(descriptor, Self.size)
        guard memory != 0 else { return nil }
    }

    deinit {
        csandbox_unmap(memory, Self.size)
    }

    /// Runs `body`, which may crash the process, while an entry names its source.
    /// - Parameter limit: permitted CPU time if it is below the usual limit.
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
        // The source is stored last, because it makes the entry valid; 0 means free, so it is offset by one.
        csandbox_store_word(memory, place, source.number &+ 1)
        defer {
            csandbox_store_word(memory, place, 0)
            taken.withLock { $0[index] = false }
        }
        return try body()
    }

    /// The occupied entries by index, as read by the server.
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

    /// Frees all entries of a process that has ended.
    package func clear() {
        for index in 0..<Self.capacity { csandbox_store_word(memory, index * Self.words, 0) }
    }
}
