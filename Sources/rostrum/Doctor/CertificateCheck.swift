import Base
import HTTP

/// Checks whether browsers accept the certificate, today and in two weeks.
enum CertificateCheck {
    private static let subject = "certificate"
    /// In seconds.
    private static let day = 86_400
    /// In seconds before the certificate expires: automatic renewal has happened by then if it works.
    static let warningTime = 14 * day

    /// The properties of a certificate that decide whether browsers accept it.
    struct Facts: Equatable, Sendable {
        /// Host names in its subjectAltName; browsers ignore the common name.
        var names: [String]
        /// Seconds since 1970.
        var from: Int
        /// Seconds since 1970.
        var until: Int
        /// Whether the issuer is the certificate's own subject, so that clients have no reason to trust it.
        var isSelfIssued = false
        /// Whether the file contains the leaf alone although another certificate issued it.
        var lacksChain = false
    }

    /// Reads the configured files as the server would.
    /// - Parameter now: seconds since 1970.
    static func examine(_ configuration: Configuration, now: Int) -> [Finding] {
        guard let files = configuration.tls else { return [withoutTLS(configuration)] }
        do throws(HTTPServerError) {
            return [judge(try facts(of: files), now: now)]
        } catch {
            return [
                .fail(
                    subject, error.description,
                    remedy: "check that the server's user can read both files, and that they belong together")
            ]
        }
    }

    /// Why the server would not start with the configured files; nil if it would, or needs none.
    static func refusal(of files: HTTPServerSettings.TLSFiles?) -> String? {
        do throws(HTTPServerError) {
            if let files { _ = try facts(of: files) }
            return nil
        } catch {
            return error.description
        }
    }

    /// Reads a certificate and its key.
    /// - Throws: as `ServerCertificate.init(_:)`.
    static func facts(of files: HTTPServerSettings.TLSFiles) throws(HTTPServerError) -> Facts {
        let certificate = try ServerCertificate(files)
        let validity = certificate.validity
        return Facts(
            names: certificate.names, from: validity.from, until: validity.until,
            isSelfIssued: certificate.isSelfIssued, lacksChain: certificate.lacksChain)
    }

    /// No certificate is fine only if pages are served to this machine alone.
    private static func withoutTLS(_ configuration: Configuration) -> Finding {
        guard !configuration.http.ip.isLoopback else {
            return .ok(
                subject,
                "none needed: pages are served to this machine only, perhaps through a proxy with TLS")
        }
        return .warn(
            subject, "none, though pages are served on \(configuration.http)",
            remedy: "browsers allow cameras only on HTTPS pages; set --tls-certificate and --tls-key, "
                + "or put a proxy in front of --http 127.0.0.1:8080")
    }

    /// The most severe problem of a certificate, from what breaks every browser to what breaks some clients.
    /// - Parameter now: seconds since 1970.
    static func judge(_ facts: Facts, now: Int) -> Finding {
        let names = facts.names.isEmpty ? "no names" : facts.names.prefix(4).joined(separator: ", ")
        if now < facts.from {
            return .fail(
                subject, "for \(names), not valid until \(time(facts.from - now)) from now",
                remedy: "check this machine's clock")
        }
        if now >= facts.until {
            return .fail(
                subject, "for \(names), expired \(time(now - facts.until)) ago",
                remedy: "renew it, then have the server reload it: systemctl reload rostrum")
        }
        let left = "for \(names), valid for \(time(facts.until - now))"
        if facts.names.isEmpty {
            return .fail(
                subject, left,
                remedy: "browsers need the host name as a subjectAltName; get a certificate that has it")
        }
        if facts.until - now < warningTime {
            return .warn(
                subject, left,
                remedy: "renew it, check why it was not renewed automatically, then: systemctl reload rostrum"
            )
        }
        if facts.isSelfIssued {
            return .warn(
                subject, left + ", self-signed",
                remedy: "browsers accept it only where it was installed as trusted")
        }
        if facts.lacksChain {
            return .warn(
                subject, left + ", without intermediate certificates",
                remedy: "use the full chain (fullchain.pem); some clients reject it otherwise")
        }
        return .ok(subject, left)
    }

    /// Days, or hours for less than two days.
    private static func time(_ seconds: Int) -> String {
        seconds >= 2 * day ? "\(seconds / day) days" : "\(max(seconds / 3_600, 0)) hours"
    }
}
