import Base
import Dispatch
import Foundation
import Glibc
import Stage

/// The recordings on the disk: files in a folder for each stream, and beside each what is known of it.
///
/// What is known is a file of its own (`ID.json`), replaced as a whole, so that a folder can be copied, moved or
/// removed with all that belongs to it. Used by one queue; nothing here may hold up an actor.
final class RecordingShelf: Sendable {
    let settings: RecordingSettings
    private let log: Log
    private let queue = DispatchQueue(label: "recordings", qos: .utility)

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

    /// Bytes that may be written yet; nil where that is not known.
    static func room(at path: String) -> Int64? {
        var status = statvfs()
        guard statvfs(path, &status) == 0 else { return nil }
        return Int64(clamping: UInt64(status.f_bavail) &* UInt64(status.f_frsize))
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

    private static func names(in folder: String) -> [String] {
        ((try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []).sorted()
    }

    // MARK: Writing

    /// Remembers an entry.
    /// - Returns: nil once it is durable, or why it is not.
    func save(_ entry: RecordingEntry) async -> String? {
        await run { [self] in
            do throws(RecordingFailure) {
                try write(entry)
                return nil
            } catch {
                return error.text
            }
        }
    }

    func remove(_ entry: RecordingEntry) async {
        await run { [self] in
            let folder = folder(of: entry.stream)
            if let path = path(of: entry) { unlink(path) }
            unlink("\(folder)/\(entry.id).json")
            try? Self.sync(folder)
            rmdir(folder)
        }
    }

    private func write(_ entry: RecordingEntry) throws(RecordingFailure) {
        let folder = folder(of: entry.stream)
        for path in [settings.directory, folder] where mkdir(path, 0o700) != 0 && errno != EEXIST {
            throw RecordingFailure(code: errno)
        }
        guard let data = try? JSONEncoder().encode(entry) else { throw RecordingFailure(code: EINVAL) }
        let (path, draft) = ("\(folder)/\(entry.id).json", "\(folder)/.\(entry.id).json")
        let descriptor = open(draft, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw RecordingFailure(code: errno) }
        let bytes = Array(data)
        let isWritten = Glibc.write(descriptor, bytes, bytes.count) == bytes.count && fsync(descriptor) == 0
        let code = errno
        close(descriptor)
        guard isWritten, rename(draft, path) == 0 else {
            unlink(draft)
            throw RecordingFailure(code: isWritten ? errno : code == 0 ? ENOSPC : code)
        }
        try Self.sync(folder)
        try Self.sync(settings.directory)
    }

    private static func sync(_ folder: String) throws(RecordingFailure) {
        let descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw RecordingFailure(code: errno) }
        defer { close(descriptor) }
        guard fsync(descriptor) == 0 else { throw RecordingFailure(code: errno) }
    }

    private func run<Result: Sendable>(_ body: @escaping @Sendable () -> Result) async -> Result {
        await withCheckedContinuation { continuation in
            queue.async { continuation.resume(returning: body()) }
        }
    }
}

/// What the system said.
struct RecordingFailure: Error {
    let code: CInt

    var text: String { String(cString: strerror(code)) }
    var isFull: Bool { [ENOSPC, EDQUOT, EFBIG].contains(code) }
}
