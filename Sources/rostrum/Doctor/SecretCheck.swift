import Base
import Glibc

/// Checks whether others could sign tokens: by reading the secret, or by guessing it.
enum SecretCheck {
    private static let subject = "secret"
    private static let remedy = "use the output of `openssl rand -hex 32`"

    /// - Parameter file: the file that contains the secret; nil if it comes from elsewhere.
    static func examine(_ key: Configuration.SigningKey, file: String?) -> Finding {
        // A group may have access: it lets a service read the file without owning it.
        if let file, let mode = mode(of: file), mode & 0o007 != 0 {
            return .fail(
                subject, "\(file) is open to everyone on this machine",
                remedy: "run chmod o= \(file), and replace the key")
        }
        return judge(key.secret?.exposed)
    }

    /// - Parameter secret: nil if a secret is made at each start.
    static func judge(_ secret: String?) -> Finding {
        guard let secret else {
            return .ok(subject, "made at each start: tokens are valid until the server stops")
        }
        let bytes = Array(secret.utf8)
        guard bytes.count >= 32 else {
            return .fail(subject, "\(bytes.count) bytes, but at least 32 are needed", remedy: remedy)
        }
        // 32 random hexadecimal digits have fewer than eight different characters once in ten million times.
        guard Set(bytes).count >= 8 else {
            return .fail(subject, "only \(Set(bytes).count) different characters", remedy: remedy)
        }
        return .ok(subject, "\(bytes.count) bytes")
    }

    /// Permission bits; nil if the file does not exist.
    private static func mode(of path: String) -> mode_t? {
        var status = stat()
        return stat(path, &status) == 0 ? status.st_mode : nil
    }
}
