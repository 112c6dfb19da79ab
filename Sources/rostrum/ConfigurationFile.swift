import Base
import Foundation

/// The file that says what flags and environment do not.
struct ConfigurationFile: Sendable {
    /// Where it is looked for when nobody names one.
    static let usualPath = "/etc/rostrum/rostrum.toml"
    /// In bytes; no configuration is longer.
    private static let sizeLimit = 1 << 20

    let path: String
    let values: OptionValues

    /// Reads the file that `values` name, or the usual one if there is one.
    ///
    /// What is tried out on some machine is not told by the file of the server that is installed there.
    /// - Parameter values: of flags and environment.
    /// - Returns: nil if there is none to read.
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
                    "cannot read the file \(path) that \(named.origin) names: \(reason(error))")
            }
        }
        let isDevelopment = try values.toggle("dev") ?? false
        guard !isDevelopment else { return nil }
        do {
            return try ConfigurationFile(usualPath)
        } catch let error as ConfigurationError {
            throw error
        } catch let error as POSIXError where error.code == .ENOENT || error.code == .ENOTDIR {
            return nil
        } catch {
            throw ConfigurationError(
                "cannot read \(usualPath): \(reason(error)); run this as a user who may, or name another file "
                    + "by --config, such as /dev/null for none")
        }
    }

    private init(_ path: String) throws {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw Self.systemError() }
        let file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        let bytes = try file.read(upToCount: Self.sizeLimit + 1) ?? Data()
        guard bytes.count <= Self.sizeLimit else {
            throw ConfigurationError(
                "\(path) has more than \(Self.sizeLimit) bytes, which no configuration has")
        }
        guard let text = String(data: bytes, encoding: .utf8) else {
            throw ConfigurationError("\(path) is not written in UTF-8")
        }
        self.path = path
        values = try OptionValues.parse(file: text, name: path)
    }

    private static func systemError() -> POSIXError { POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }

    private static func reason(_ error: any Error) -> String {
        (error as? POSIXError).map { String(cString: strerror($0.code.rawValue)) } ?? "\(error)"
    }
}

/// A file with one secret in its first line, which the operator's tools keep from others.
enum SecretFile {
    /// Its first line is the key; further ones are keys of before.
    ///
    /// Of these, empty lines and ones that begin with # are left out.
    /// - Parameter value: of the option that names it.
    /// - Returns: nil where there is no such option.
    static func read(
        _ value: OptionValues.Value?
    ) throws(ConfigurationError) -> (key: Secret<String>, previous: [Secret<String>])? {
        guard let value, let path = value.texts.first else { return nil }
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            throw ConfigurationError(
                "cannot read the file \(path) that \(value.origin) names: \(String(cString: strerror(errno)))"
            )
        }
        let file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        let bytes = (try? file.read(upToCount: 4_096)) ?? Data()
        let lines = String(decoding: bytes, as: UTF8.self)
            .split(omittingEmptySubsequences: false) { $0 == "\n" || $0 == "\r\n" }.map(\.trimmingBlanks)
        guard let secret = lines.first, !secret.isEmpty else {
            throw ConfigurationError(
                "the first line of \(path), which \(value.origin) names, holds no secret")
        }
        let previous = lines.dropFirst().filter { !$0.isEmpty && !$0.hasPrefix("#") }
        return (Secret(secret), previous.map { Secret($0) })
    }
}
