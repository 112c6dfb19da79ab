import Gateway
import HTTP
import Synchronization

/// When the certificate that the server presents expires, for metrics and the log.
///
/// It is what was read at the start or by the last reload that succeeded, not what the files contain now: a renewal
/// that nobody told the server of is noticed as well. Without this, the first to notice would be the browsers.
final class PresentedCertificate: Sendable {
    /// Nil without TLS, which a reload cannot turn on.
    private let facts: Mutex<CertificateCheck.Facts?>

    /// - Parameter facts: nil without TLS.
    init(_ facts: CertificateCheck.Facts?) {
        self.facts = Mutex(facts)
    }

    /// Reads the files that a reload has the server present; does nothing if it was started without TLS.
    /// - Throws: as `ServerCertificate.init(_:)`, and keeps what it knew.
    func renew(_ files: HTTPServerSettings.TLSFiles?) throws(HTTPServerError) {
        guard let files, facts.withLock({ $0 != nil }) else { return }
        let next = try CertificateCheck.facts(of: files)
        facts.withLock { $0 = next }
    }

    /// What is wrong with the time of its validity, or will be in two weeks; nil if nothing is.
    /// - Parameter now: seconds since 1970.
    func warning(now: Int) -> Warning? {
        guard let facts = facts.withLock({ $0 }), facts.until > 0,
            now < facts.from || facts.until - now < CertificateCheck.warningTime
        else { return nil }
        let finding = CertificateCheck.judge(facts, now: now)
        return Warning(
            event: "certificate", reason: finding.remedy.map { "\(finding.text): \($0)" } ?? finding.text)
    }

    /// The end of its validity, which an alert compares with the time.
    var metric: Metric {
        Metric(
            "rostrum_certificate_not_after_timestamp_seconds", .gauge,
            "When the certificate in use expires, in seconds since 1970; 0 without TLS.",
            Double(facts.withLock { $0?.until ?? 0 }))
    }
}
