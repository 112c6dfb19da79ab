import Base
import Dispatch
import Foundation
import Glibc
import Store
import Synchronization

/// The recordings on the disk: a folder for each stream, with a JSON file next to each recorded file.
///
/// The JSON file (`ID.json`) is the entry, and is replaced as a whole, so a folder can be copied, moved or deleted with
/// everything that belongs to it. All access happens on one queue, because no actor may wait for the disk.
final class RecordingShelf: Sendable {
    let settings: RecordingSettings
    private let log: Log
    private let queue = DispatchQueue(label: "recordings", qos: .utility)
    /// Entries that have ended and are not on the disk yet, in that order.
    ///
    /// At most two for each recording that was under way when the disk failed, because no recording starts unless its
    /// entry is on the disk.
    private let unkept = Mutex<[RecordingEntry]>([])
    private let roomAt: @Sendable (String) -> Int64?

    /// - Parameter roomAt: bytes that may still be written at a path; nil if unknown. May block, as a broken disk does.
    init(
        _ settings: RecordingSettings, log: Log,
        roomAt: @escaping @Sendable (String) -> Int64? = { DiskSpace.room(at: $0) }
    ) {
        self.settings = settings
        self.log = log
        self.roomAt = roomAt
    }

    private func folder(of stream: String) -> String { "\(settings.directory)/\(stream)" }

    /// Nil before there is a file.
    func path(of entry: RecordingEntry) -> String? {
        entry.fileName.map { "\(folder(of: entry.stream))/\($0)" }
    }

    /// The path of a file that may not exist yet.
    func path(of entry: RecordingEntry, _ container: String) -> String {
        "\(folder(of: entry.stream))/\(entry.id).\(container)"
    }

    /// Whether files may begin, even before the folder exists; on the queue, because the disk may not answer.
    private var hasRoom: Bool {
        let above = settings.directory.lastIndex(of: "/").map { String(settings.directory[..<$0]) } ?? "."
        guard let room = roomAt(settings.directory) ?? roomAt(above) else { return true }
        return room >= settings.reserve
    }

    // MARK: Reading

    /// All entries; recordings that were under way when the server died are completed.
    func load() async -> [RecordingEntry] {
        await run { [self] in
            var entries: [RecordingEntry] = []
            for stream in Self.names(in: settings.directory) where StreamID(stream) != nil {
                for name in Self.names(in: folder(of: stream)) where name.hasSuffix(".json") {
                    guard let data = FileManager.default.contents(atPath: "\(folder(of: stream))/\(name)"),
                        var entry = try? JSONDecoder().decode(RecordingEntry.self, from: data),
                        entry.stream == stream, "\(entry.id).json" == name
                    else {
                        log.warning("recording.unreadable", ["stream": stream, "file": name])
                        continue
                    }
                    if entry.state == .recording, entry.kind == .clip {
                        // A clip that was not finished is not what was requested.
                        discard(entry)
                        continue
                    }
                    if entry.state == .recording { complete(&entry) }
                    entries.append(entry)
                }
            }
            return entries
        }
    }

    /// Repairs the file of a recording that was interrupted, and stores its entry as ended.
    private func complete(_ entry: inout RecordingEntry) {
        entry.state = .ended
        entry.endReason = .interrupted
        for container in ["webm", "mp4"] {
            let path = path(of: entry, container)
            guard access(path, F_OK) == 0 else { continue }
            entry.fileExtension = container
            if let length = RecordingRepair.repair(path, container) {
                entry.milliseconds = length.milliseconds
                entry.size = length.size
            }
            break
        }
        entry.endedAt = entry.startedAt + entry.milliseconds
        log.info(
            "recording.completed",
            ["stream": entry.stream, "recording": entry.id, "milliseconds": entry.milliseconds])
        if (try? write(entry)) == nil { log.error("recording.not-kept", ["recording": entry.id]) }
    }

    private func discard(_ entry: RecordingEntry) {
        unlink(path(of: entry, "mp4"))
        if unlink("\(folder(of: entry.stream))/\(entry.id).json") != 0 {
            log.error("clip.not-removed", ["clip": entry.id])
        }
    }

    /// Sorted names in a folder; empty if it does not exist.
    private static func names(in folder: String) -> [String] {
        ((try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []).sorted()
    }

    // MARK: Writing

    /// Stores an entry.
    ///
    /// An actor that calls this several times has the last state of an entry on the disk in the end.
    /// - Returns: nil once it is durable, or the error.
    func save(
        _ entry: RecordingEntry, isolation: isolated (any Actor)? = #isolation
    ) async -> FileError? {
        await run { [self] in store(entry) }
    }

    /// Stores the entry of a file that is about to begin, if the disk has room for one.
    /// - Returns: nil once it is durable, or the error.
    func admit(
        _ entry: RecordingEntry, isolation: isolated (any Actor)? = #isolation
    ) async -> FileError? {
        await run { [self] in hasRoom ? store(entry) : FileError(code: ENOSPC) }
    }

    private func store(_ entry: RecordingEntry) -> FileError? {
        do throws(FileError) {
            try write(entry)
            return nil
        } catch {
            return error
        }
    }

    /// Deletes a file and its entry; a reader that has the file open can continue.
    /// - Returns: nil once that is durable, or the error; a failed deletion can be repeated.
    func remove(
        _ entry: RecordingEntry, isolation: isolated (any Actor)? = #isolation
    ) async -> String? {
        await run { [self] in
            let folder = folder(of: entry.stream)
            do throws(FileError) {
                // The entry last: without an entry the file would never be found and deleted.
                if let name = entry.fileName { try DurableFile.remove(name, from: folder) }
                try DurableFile.remove("\(entry.id).json", from: folder)
            } catch {
                return error.text
            }
            // Succeeds only for the stream's last recording.
            rmdir(folder)
            unkept.withLock { $0.removeAll { $0.id == entry.id } }
            return nil
        }
    }

    /// Stores an entry that has ended; if the disk fails, `keepUnkept` stores it later.
    /// - Returns: nil once it is durable, or the error.
    func conclude(
        _ entry: RecordingEntry, isolation: isolated (any Actor)? = #isolation
    ) async -> FileError? {
        await run { [self] in
            let failure = store(entry)
            // On the queue as well: an entry that is removed a moment later must not come back.
            unkept.withLock { unkept in
                // What was to be stored of it before is out of date.
                unkept.removeAll { $0.id == entry.id }
                if failure != nil { unkept.append(entry) }
            }
            return failure
        }
    }

    /// The streams with entries that have ended and are not on the disk.
    var unkeptStreams: Set<StreamID> {
        unkept.withLock { entries in Set(entries.compactMap { StreamID($0.stream) }) }
    }

    /// Tries again to store what `conclude` could not of a stream.
    /// - Returns: entries that are on the disk now, in order, with their files repaired.
    func keepUnkept(of stream: StreamID) async -> [RecordingEntry] {
        let name = stream.description
        return await run { [self] in
            var kept: [RecordingEntry] = []
            while var entry = unkept.withLock({ entries in entries.first { $0.stream == name } }) {
                do throws(FileError) {
                    // The entry first: a file is repaired only once the disk accepts writes again.
                    try write(entry)
                    mend(&entry)
                    try write(entry)
                } catch {
                    break
                }
                unkept.withLock { $0.removeAll { $0.id == entry.id } }
                kept.append(entry)
            }
            return kept
        }
    }

    /// Repairs the file as far as it was written.
    private func mend(_ entry: inout RecordingEntry) {
        guard let container = entry.fileExtension,
            let length = RecordingRepair.repair(path(of: entry, container), container)
        else { return }
        (entry.milliseconds, entry.size) = (length.milliseconds, length.size)
    }

    /// Makes an entry and the folders that it is in durable.
    private func write(_ entry: RecordingEntry) throws(FileError) {
        let folder = folder(of: entry.stream)
        try DurableFile.makeFolder(settings.directory)
        try DurableFile.makeFolder(folder)
        guard let data = try? JSONEncoder().encode(entry) else { throw FileError(code: EINVAL) }
        try DurableFile.replace("\(entry.id).json", in: folder, with: Array(data))
        try DurableFile.sync(settings.directory)
    }

    /// Runs disk access on the queue, in the order in which an actor asks for it.
    ///
    /// Isolated to the caller: elsewhere, two calls of one actor could reach the queue in the other order.
    private func run<Result: Sendable>(
        isolation: isolated (any Actor)? = #isolation, _ body: @escaping @Sendable () -> Result
    ) async -> Result {
        await withCheckedContinuation(isolation: isolation) { continuation in
            queue.async { continuation.resume(returning: body()) }
        }
    }
}
