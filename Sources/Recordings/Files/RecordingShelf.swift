import Base
import Dispatch
import Foundation
import Glibc
import Store
import Synchronization

/// The recordings on the disk: files in a folder for each stream, and beside each what is known of it.
///
/// What is known is a file of its own (`ID.json`), replaced as a whole, so that a folder can be copied, moved or
/// removed with all that belongs to it. Used by one queue; nothing here may hold up an actor.
final class RecordingShelf: Sendable {
    let settings: RecordingSettings
    private let log: Log
    private let queue = DispatchQueue(label: "recordings", qos: .utility)
    /// What has ended and is not on the disk, in that order: two at most of each recording that was under way when the
    /// disk took nothing more, since nothing begins that is not on it.
    private let unkept = Mutex<[RecordingEntry]>([])

    init(_ settings: RecordingSettings, log: Log) {
        self.settings = settings
        self.log = log
    }

    private func folder(of stream: String) -> String { "\(settings.directory)/\(stream)" }

    func path(of entry: RecordingEntry) -> String? {
        entry.fileName.map { "\(folder(of: entry.stream))/\($0)" }
    }

    func path(of entry: RecordingEntry, _ container: String) -> String {
        "\(folder(of: entry.stream))/\(entry.id).\(container)"
    }

    /// Bytes that may be written yet, also before there is a recording; nil where that is not known.
    var room: Int64? {
        let above = settings.directory.lastIndex(of: "/").map { String(settings.directory[..<$0]) } ?? "."
        return DiskSpace.room(at: settings.directory) ?? DiskSpace.room(at: above)
    }

    // MARK: Reading

    /// All that there is; what was under way when the server ended is completed.
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
                        // Half of what somebody wanted to show is nothing to be shown.
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

    private static func names(in folder: String) -> [String] {
        ((try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []).sorted()
    }

    // MARK: Writing

    /// Remembers an entry.
    /// - Returns: nil once it is durable, or why it is not.
    func save(_ entry: RecordingEntry) async -> FileError? {
        await run { [self] in
            do throws(FileError) {
                try write(entry)
                return nil
            } catch {
                return error
            }
        }
    }

    /// Forgets an entry, and removes its file; whoever reads that already can read on.
    /// - Returns: nil once that is durable, or why it is not. Then it can be tried again.
    func remove(_ entry: RecordingEntry) async -> String? {
        await run { [self] in
            let folder = folder(of: entry.stream)
            do throws(FileError) {
                // What is known of it last: a file of which nobody knows would stay for ever.
                if let name = entry.fileName { try DurableFile.remove(name, from: folder) }
                try DurableFile.remove("\(entry.id).json", from: folder)
            } catch {
                return error.text
            }
            rmdir(folder)
            unkept.withLock { $0.removeAll { $0.id == entry.id } }
            return nil
        }
    }

    /// Remembers what has ended; where the disk does not take it, as soon as it does (`keepUnkept`).
    /// - Returns: nil once it is durable, or why it is not.
    func conclude(_ entry: RecordingEntry) async -> FileError? {
        let failure = await save(entry)
        if failure != nil { unkept.withLock { $0.append(entry) } }
        return failure
    }

    /// Whether something that has ended is not on the disk.
    var hasUnkept: Bool { unkept.withLock { !$0.isEmpty } }

    /// Tries again.
    /// - Returns: those that are on the disk now, in order, as they are with their ends mended.
    func keepUnkept() async -> [RecordingEntry] {
        await run { [self] in
            var kept: [RecordingEntry] = []
            while var entry = unkept.withLock({ $0.first }) {
                do throws(FileError) {
                    // First, since a file is mended only where the disk takes what is written.
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

    /// Completes its file as far as that was written.
    private func mend(_ entry: inout RecordingEntry) {
        guard let container = entry.fileExtension,
            let length = RecordingRepair.repair(path(of: entry, container), container)
        else { return }
        (entry.milliseconds, entry.size) = (length.milliseconds, length.size)
    }

    private func write(_ entry: RecordingEntry) throws(FileError) {
        let folder = folder(of: entry.stream)
        try DurableFile.makeFolder(settings.directory)
        try DurableFile.makeFolder(folder)
        guard let data = try? JSONEncoder().encode(entry) else { throw FileError(code: EINVAL) }
        try DurableFile.replace("\(entry.id).json", in: folder, with: Array(data))
        try DurableFile.sync(settings.directory)
    }

    private func run<Result: Sendable>(_ body: @escaping @Sendable () -> Result) async -> Result {
        await withCheckedContinuation { continuation in
            queue.async { continuation.resume(returning: body()) }
        }
    }
}
