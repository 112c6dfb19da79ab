import Base
import Glibc

/// Checks whether others could sign tokens: by reading the secret, or by guessing it.
enum SecretCheck {
    private static let subject = "secret"
    private static let remedy = "take the output of `openssl rand -hex 32`"

    /// - Parameter file: the file that contains the secret; nil if it comes from elsewhere.
    static func examine(_ key: Configuration.SigningKey, file: String?) -> Finding {
        // A group may have access: it lets a service read the file without owning it.
        if let file, let mode = mode(of: file), mode & 0o007 != 0 {
            return .fail(
                subject, "everybody on this machine may use \(file)",
                remedy: "chmod o= \(file), and make a new one")
        }
        return judge(key.secret?.exposed)
    }

    /// - Parameter secret: nil if a secret is made at each start.
    static func judge(_ secret: String?) -> Finding {
        guard let secret else { return .ok(subject, "made at each start: tokens end with the server") }
        let bytes = Array(secret.utf8)
        guard bytes.count >= 32 else {
            return .fail(subject, "it has \(bytes.count) bytes of at least 32", remedy: remedy)
        }
        // 32 random hexadecimal digits have fewer than eight different characters once in ten million times.
        guard Set(bytes).count >= 8 else {
            return .fail(subject, "it has only \(Set(bytes).count) different characters", remedy: remedy)
        }
        return .ok(subject, "\(bytes.count) bytes")
    }

    /// Permission bits; nil if the file does not exist.
    private static func mode(of path: String) -> mode_t? {
        var status = stat()
        return stat(path, &status) == 0 ? status.st_mode : nil
    }
}
