import Base

/// The pause pictures that are being written to the disk, and what holds instead of those that the disk refuses.
///
/// Pictures are shown from memory, which has them before the disk. Several calls may wait for the disk at once, so what
/// memory contained before a call need not be stored either.
struct PauseChoices {
    /// One stream's writes.
    private struct Writes {
        /// What the disk has; nil for no picture.
        var stored: [UInt8]?
        /// The write that stored it; 0 if it was stored before the first of these.
        var storedBy: UInt64 = 0
        /// The first of these writes.
        let first: UInt64
        /// The latest write.
        var latest: UInt64
        var isLatestRefused = false
        /// Writes that the disk has not answered yet.
        var waiting = 0
    }

    /// A picture to show instead of the present one.
    struct Correction: Equatable {
        /// Nil for no picture of the host's choice.
        let file: [UInt8]?
    }

    private var streams: [StreamID: Writes] = [:]
    private var last: UInt64 = 0

    /// Whether nothing is being written.
    var isEmpty: Bool { streams.isEmpty }

    /// Begins to write a stream's picture.
    /// - Parameter shown: the picture that memory has until now; nil for none.
    /// - Returns: the number of the write, for `end`.
    mutating func begin(of stream: StreamID, insteadOf shown: [UInt8]?) -> UInt64 {
        last += 1
        // Where nothing is being written, memory and disk have the same.
        var writes = streams[stream] ?? Writes(stored: shown, first: last, latest: last)
        writes.latest = last
        writes.isLatestRefused = false
        writes.waiting += 1
        streams[stream] = writes
        return last
    }

    /// Notes the disk's answer to a write.
    /// - Parameter file: the picture that was to be written; nil if it was to be removed.
    /// - Returns: what memory must have from now on; nil if that does not change.
    mutating func end(
        _ number: UInt64, _ file: [UInt8]?, of stream: StreamID, isStored: Bool
    ) -> Correction? {
        // Writes of an earlier stream of this name do not count.
        guard var writes = streams[stream], number >= writes.first else { return nil }
        writes.waiting -= 1
        if isStored, number > writes.storedBy { (writes.stored, writes.storedBy) = (file, number) }
        if !isStored, number == writes.latest { writes.isLatestRefused = true }
        streams[stream] = writes.waiting > 0 ? writes : nil
        return writes.isLatestRefused ? Correction(file: writes.stored) : nil
    }

    /// Forgets a stream that has ended, with its picture.
    mutating func forget(_ stream: StreamID) { streams[stream] = nil }
}
