import Base
import Foundation
import Store

/// `rostrum restore`: puts a backup into a server's data directory, completely or not at all.
///
/// Nothing is overwritten: the directory must be empty or missing, or contain only what a killed restore left.
struct RestoreCommand: Sendable {
    /// The backup's directory.
    private let directory: String
    /// The server's data directory.
    private let data: String
    /// Only check the backup.
    private let isCheck: Bool

    /// The argument without a name.
    static let operand = Option("from", .text, "DIRECTORY")
    /// The flags of this command, besides the server's.
    static let options: [Option] = [
        Option(
            "check", .toggle, "",
            "Only check that the backup is complete and that this version can restore it.")
    ]
    /// All flags of `rostrum restore`.
    static let flags = options + Option.all.filter { ["data", "config", "dev"].contains($0.name) }

    /// - Parameters:
    ///   - values: flags.
    ///   - server: the server's options of all sources.
    init(_ values: OptionValues, server: OptionValues) throws(ConfigurationError) {
        guard let directory = values[Self.operand.name]?.texts.first else {
            throw ConfigurationError("a backup is missing: rostrum restore DIRECTORY")
        }
        self.directory = BackupCommand.withoutSlashes(directory)
        isCheck = try values.toggle("check") ?? false
        data = try BackupCommand.dataDirectory(server)
    }

    /// Restores the backup, or only checks it.
    /// - Returns: a summary for an operator.
    /// - Throws: if the backup is incomplete or newer than this program, or if there is data already.
    func run() throws(BackupFailure) -> String {
        let manifest = try BackupManifest.read(in: directory)
        // Older tables are brought up to date when a server opens them; newer ones would be unreadable.
        guard manifest.schema <= StoreCopy.schema else {
            throw BackupFailure(
                "\(directory) was made by a newer Rostrum (\(manifest.rostrum), schema \(manifest.schema); this is "
                    + "\(Rostrum.version), schema \(StoreCopy.schema)): restore it with that version")
        }
        if isCheck { return try check(manifest) }
        // Before `RestoreTarget` creates it.
        let isNew = access(data, F_OK) != 0
        let target: RestoreTarget
        do throws(StoreOpenError) {
            target = try RestoreTarget(path: data)
        } catch {
            throw BackupFailure(error.description)
        }
        do throws(BackupFailure) {
            try fill(target, with: manifest)
        } catch {
            target.abandon()
            throw error
        }
        do throws(FileError) {
            // A failure from here on keeps the directory, because parts of the data have been moved; a second run
            // starts over.
            try target.finish()
        } catch {
            throw BackupFailure("cannot finish: \(error.text); run it again")
        }
        return summary(of: manifest, isNew: isNew)
    }

    /// Copies the data into the staging directory, checking each file against the manifest.
    private func fill(_ target: borrowing RestoreTarget, with manifest: BackupManifest) throws(BackupFailure)
    {
        // Settings stay in the backup: the machine may have newer ones.
        let files = manifest.files.filter { $0.path.hasPrefix("data/") }
        // The sum may overflow if a manifest has absurd sizes; the check of each file refuses those.
        let bytes = files.reduce(Int64(0)) { $0.addingReportingOverflow($1.bytes).partialValue }
        if let free = FileCopy.freeBytes(at: target.staging), free < bytes {
            throw BackupFailure(
                "not enough disk space in \(data): needs \(bytes >> 20) MB, but only \(free >> 20) MB are free"
            )
        }
        for file in files {
            let name = file.path.dropFirst("data/".count)
            var folder = target.staging
            for part in name.split(separator: "/").dropLast() {
                folder += "/\(part)"
                try FileCopy.makeFolder(folder)
            }
            let source = "\(directory)/\(file.path)"
            try check(try FileCopy.copy(source, to: "\(target.staging)/\(name)"), of: file)
        }
        try check(store: "\(target.staging)/\(StoreCopy.fileName)", of: manifest)
        try giveToOwner(of: target.path, all: target.staging)
        try FileCopy.sync(target.staging)
    }

    // MARK: Looking

    /// Checks each file, settings included, and the store's tables.
    private func check(_ manifest: BackupManifest) throws(BackupFailure) -> String {
        for file in manifest.files {
            try check(try FileCopy.content(of: "\(directory)/\(file.path)"), of: file)
        }
        try check(store: "\(directory)/\(BackupManifest.store)", of: manifest)
        return "\(directory) is complete: \(description(of: manifest))\n"
    }

    /// Compares a file with the manifest.
    /// - Parameter content: nil if the file is missing.
    private func check(_ content: FileCopy.Content?, of file: BackupManifest.File) throws(BackupFailure) {
        guard let content else {
            throw BackupFailure("\(directory) is damaged: \(file.path) is missing")
        }
        guard content.bytes == file.bytes, content.sha256 == file.sha256 else {
            throw BackupFailure(
                "\(directory) is damaged: \(file.path) has changed since the backup was made")
        }
    }

    /// Lets SQLite check the file, because a digest only proves that it is what was copied.
    private func check(store path: String, of manifest: BackupManifest) throws(BackupFailure) {
        let schema: Int
        do throws(StoreOpenError) {
            schema = try StoreCopy.check(path)
        } catch {
            throw BackupFailure(error.description)
        }
        // An empty file is a store without tables for SQLite: a server would begin with it as if nothing had been.
        guard schema == manifest.schema else {
            throw BackupFailure(
                "\(directory) is damaged: \(BackupManifest.store) has tables of schema \(schema), but its manifest "
                    + "names schema \(manifest.schema)")
        }
    }

    // MARK: Ends

    /// Gives the restored files to the owner of the data directory if root runs the command.
    ///
    /// The server's user could not open them otherwise. `lchown` changes a link itself, not its target.
    private func giveToOwner(of directory: String, all folder: String) throws(BackupFailure) {
        guard geteuid() == 0 else { return }
        var status = stat()
        guard stat(directory, &status) == 0 else { throw FileCopy.failure("read", directory) }
        let names = (try? FileManager.default.subpathsOfDirectory(atPath: folder)) ?? []
        for path in names.map({ "\(folder)/\($0)" }) + [folder] {
            guard lchown(path, status.st_uid, status.st_gid) == 0 else {
                throw FileCopy.failure("change the owner of", path)
            }
        }
    }

    private func description(of manifest: BackupManifest) -> String {
        "the data as of \(manifest.createdAt), \(manifest.recordings ? "with" : "without") recordings, from Rostrum "
            + manifest.rostrum
    }

    /// What was restored, which settings are left in the backup, and what root has to do.
    /// - Parameter isNew: whether this command created the data directory, which belongs to root then.
    private func summary(of manifest: BackupManifest, isNew: Bool) -> String {
        var text = "\(data) holds \(description(of: manifest))\n"
        for file in manifest.files where file.path.hasPrefix("settings/") {
            text +=
                "\(directory)/\(file.path) was \(file.origin ?? "a setting"): copy it back yourself if it is gone\n"
        }
        if isNew, geteuid() == 0 {
            text += "\(data) now belongs to root: give it to the server's user with chown -R\n"
        }
        return text
    }
}
