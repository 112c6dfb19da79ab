import Base
import HTTP

/// Whether browsers take the certificate, today and in two weeks.
enum CertificateCheck {
    private static let subject = "certificate"
    private static let day = 86_400
    /// Before its end, in seconds: who renews by themselves have done so long before.
    static let warningTime = 14 * day

    /// What a certificate says of itself.
    struct Facts: Equatable, Sendable {
        var names: [String]
        /// Seconds since 1970.
        var from: Int
        var until: Int
        var isSelfIssued = false
        var lacksChain = false
    }

    static func examine(_ configuration: Configuration, now: Int) -> [Finding] {
        guard let files = configuration.tls else { return [withoutTLS(configuration)] }
        do throws(HTTPServerError) {
            let certificate = try ServerCertificate(files)
            let validity = certificate.validity
            let facts = Facts(
                names: certificate.names, from: validity.from, until: validity.until,
                isSelfIssued: certificate.isSelfIssued, lacksChain: certificate.lacksChain)
            return [judge(facts, now: now)]
        } catch {
            return [
                .fail(
                    subject, error.description,
                    remedy: "the server's user must be able to read both, and they must belong together")
            ]
        }
    }

    private static func withoutTLS(_ configuration: Configuration) -> Finding {
        guard !configuration.http.ip.isLoopback else {
            return .ok(subject, "none: pages are for this machine, or for a proxy with TLS on it")
        }
        return .warn(
            subject, "none, and pages are served on \(configuration.http)",
            remedy: "browsers give the camera to HTTPS pages only; give --tls-certificate and --tls-key, "
                + "or put a proxy before --http 127.0.0.1:8080")
    }

    static func judge(_ facts: Facts, now: Int) -> Finding {
        let names = facts.names.isEmpty ? "no names" : facts.names.prefix(4).joined(separator: ", ")
        if now < facts.from {
            return .fail(
                subject, "for \(names), begins only in \(time(facts.from - now))",
                remedy: "see whether this machine's clock is right")
        }
        if now >= facts.until {
            return .fail(
                subject, "for \(names), ended \(time(now - facts.until)) ago",
                remedy: "renew it, then let the server read it: systemctl reload rostrum")
        }
        let left = "for \(names), good for \(time(facts.until - now))"
        if facts.names.isEmpty {
            return .fail(
                subject, left,
                remedy: "browsers need the host's name as a subjectAltName; have another one made")
        }
        if facts.until - now < warningTime {
            return .warn(
                subject, left,
                remedy: "renew it now, and see why that was not done by itself; then systemctl reload rostrum"
            )
        }
        if facts.isSelfIssued {
            return .warn(
                subject, left + ", signed by itself", remedy: "browsers take it only where they were told to")
        }
        if facts.lacksChain {
            return .warn(
                subject, left + ", without those that it depends on",
                remedy: "give the full chain (fullchain.pem): some clients do not find them")
        }
        return .ok(subject, left)
    }

    private static func time(_ seconds: Int) -> String {
        seconds >= 2 * day ? "\(seconds / day) days" : "\(max(seconds / 3_600, 0)) hours"
    }
}
