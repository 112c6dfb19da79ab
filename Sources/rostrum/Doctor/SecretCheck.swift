import Base
import Glibc

/// Whether others could sign tokens.
enum SecretCheck {
    private static let subject = "secret"
    private static let remedy = "take the output of `openssl rand -hex 32`"

    static func examine(_ key: Configuration.SigningKey, file: String?) -> Finding {
        if let file, let mode = mode(of: file), mode & 0o007 != 0 {
            return .fail(
                subject, "everybody on this machine may use \(file)",
                remedy: "chmod o= \(file), and make a new one")
        }
        return judge(key.secret?.exposed)
    }

    /// - Parameter secret: nil for one that is made at each start.
    static func judge(_ secret: String?) -> Finding {
        guard let secret else { return .ok(subject, "made at each start: tokens end with the server") }
        let bytes = Array(secret.utf8)
        guard bytes.count >= 32 else {
            return .fail(subject, "it has \(bytes.count) bytes of at least 32", remedy: remedy)
        }
        // 32 random hexadecimal digits have fewer than eight kinds once in ten million times.
        guard Set(bytes).count >= 8 else {
            return .fail(subject, "it has only \(Set(bytes).count) different characters", remedy: remedy)
        }
        return .ok(subject, "\(bytes.count) bytes")
    }

    private static func mode(of path: String) -> mode_t? {
        var status = stat()
        return stat(path, &status) == 0 ? status.st_mode : nil
    }
}
