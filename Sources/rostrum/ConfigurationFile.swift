import Base
import Foundation

/// The TOML file with options, which flags and environment override.
struct ConfigurationFile: Sendable {
    /// The file that is read if neither a flag nor a variable names one.
    static let usualPath = "/etc/rostrum/rostrum.toml"
    /// In bytes, so that a wrong path does not load an arbitrary file into memory.
    private static let sizeLimit = 1 << 20

    let path: String
    let values: OptionValues

    /// Reads the file that `values` name, or else the usual file if it exists.
    ///
    /// In development the usual file is not read: a trial on a machine must not take over the settings of the server
    /// that is installed there.
    /// - Parameters:
    ///   - values: options of flags and environment.
    ///   - usualPath: another path is for tests.
    /// - Returns: nil if there is no file to read.
    /// - Throws: if a named file is missing, or if a file cannot be read or makes no sense.
    static func read(for values: OptionValues, usualPath: String = usualPath) throws(ConfigurationError)
        -> ConfigurationFile?
    {
        if let named = values["config"], let path = named.texts.first {
            do {
                return try ConfigurationFile(path)
            } catch let error as ConfigurationError {
                throw error
            } catch {
                throw ConfigurationError(
                    "cannot read \(path), given by \(named.origin): \(reason(error))")
            }
        }
        let isDevelopment = try values.toggle("dev") ?? false
        guard !isDevelopment else { return nil }
        do {
            return try ConfigurationFile(usualPath)
        } catch let error as ConfigurationError {
            throw error
        } catch let error as POSIXError where error.code == .ENOENT || error.code == .ENOTDIR {
            // Only a missing file is acceptable; a file that exists but cannot be read must not be ignored.
            return nil
        } catch {
            throw ConfigurationError(
                "cannot read \(usualPath): \(reason(error)); run this as a user with access, or name another file "
                    + "with --config, such as /dev/null for none")
        }
    }

    /// Reads and parses one file; throws `POSIXError` or `ConfigurationError`.
    private init(_ path: String) throws {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw Self.systemError() }
        let file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        // One byte more than allowed, to detect a file that is too long.
        let bytes = try file.read(upToCount: Self.sizeLimit + 1) ?? Data()
        guard bytes.count <= Self.sizeLimit else {
            throw ConfigurationError(
                "\(path) is not a configuration: it has more than \(Self.sizeLimit) bytes")
        }
        guard let text = String(data: bytes, encoding: .utf8) else {
            throw ConfigurationError("\(path) is not encoded in UTF-8")
        }
        self.path = path
        values = try OptionValues.parse(file: text, name: path)
    }

    private static func systemError() -> POSIXError { POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }

    /// The system's text for an error, without Foundation's description around it.
    private static func reason(_ error: any Error) -> String {
        (error as? POSIXError).map { String(cString: strerror($0.code.rawValue)) } ?? "\(error)"
    }
}

/// A file for the secret alone, so that it can have stricter permissions than the configuration file.
enum SecretFile {
    /// In bytes: room for dozens of keys.
    private static let sizeLimit = 4_096

    /// Reads the current key from the first line, and earlier keys from the following ones.
    ///
    /// Among the following lines, empty ones and those that begin with `#` are skipped.
    /// - Parameter value: the option that names the file; nil if it is not set.
    /// - Returns: nil if the option is not set.
    /// - Throws: if the file cannot be read or is too long, or if its first line is empty.
    static func read(
        _ value: OptionValues.Value?
    ) throws(ConfigurationError) -> (key: Secret<String>, previous: [Secret<String>])? {
        guard let value, let path = value.texts.first else { return nil }
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            throw ConfigurationError(
                "cannot read \(path), given by \(value.origin): \(String(cString: strerror(errno)))"
            )
        }
        let file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        let bytes: Data
        do {
            // One byte more than allowed: a key that is cut off would be another key.
            bytes = try file.read(upToCount: sizeLimit + 1) ?? Data()
        } catch {
            throw ConfigurationError("cannot read \(path), given by \(value.origin): it is no readable file")
        }
        guard bytes.count <= sizeLimit else {
            throw ConfigurationError(
                "\(path), given by \(value.origin), has more than \(sizeLimit) bytes; remove the oldest keys")
        }
        let lines = String(decoding: bytes, as: UTF8.self)
            .split(omittingEmptySubsequences: false) { $0 == "\n" || $0 == "\r\n" }.map(\.trimmingBlanks)
        guard let secret = lines.first, !secret.isEmpty else {
            throw ConfigurationError(
                "the first line of \(path), given by \(value.origin), is empty; put the secret there")
        }
        let previous = lines.dropFirst().filter { !$0.isEmpty && !$0.hasPrefix("#") }
        return (Secret(secret), previous.map { Secret($0) })
    }
}
