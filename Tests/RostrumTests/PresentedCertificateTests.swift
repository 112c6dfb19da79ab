import Gateway
import HTTP
import Testing

@testable import rostrum

@Suite struct `The certificate in use` {
    private static let now = 1_800_000_000
    private static let day = 86_400

    private func certificate(from: Int = Self.now - 100, until: Int) -> PresentedCertificate {
        PresentedCertificate(CertificateCheck.Facts(names: ["example.org"], from: from, until: until))
    }

    @Test func `is complained of from two weeks before its end`() {
        #expect(certificate(until: Self.now + 14 * Self.day).warning(now: Self.now) == nil)
        let soon = certificate(until: Self.now + 3 * Self.day).warning(now: Self.now)
        #expect(soon?.event == "certificate")
        #expect(soon?.reason.hasPrefix("for example.org, valid for 3 days: renew it") == true)
        let ended = certificate(until: Self.now - 3 * Self.day).warning(now: Self.now)
        #expect(ended?.reason.contains("expired 3 days ago") == true)
        let early = certificate(from: Self.now + 9, until: Self.now + 90 * Self.day).warning(now: Self.now)
        #expect(early?.reason.contains("clock") == true)
        // There is none, or its time is not known.
        #expect(PresentedCertificate(nil).warning(now: Self.now) == nil)
        #expect(certificate(until: 0).warning(now: Self.now) == nil)
    }

    @Test func `tells its end in a metric`() {
        let name = "rostrum_certificate_not_after_timestamp_seconds"
        #expect([certificate(until: 1_234).metric].text.contains("\(name) 1234"))
        #expect([PresentedCertificate(nil).metric].text.contains("\(name) 0"))
    }

    @Test func `stays when a reload cannot read the next one`() throws {
        let files = HTTPServerSettings.TLSFiles(certificate: "/nonexistent/a", key: "/nonexistent/b")
        let present = certificate(until: Self.now)
        #expect(throws: HTTPServerError.self) { try present.renew(files) }
        #expect(present.warning(now: Self.now) != nil)
        try present.renew(nil)
        // TLS cannot be turned on by a reload, so its files do not matter.
        try PresentedCertificate(nil).renew(files)
    }

    /// Both can be read, which is not enough for a start.
    @Test func `is tried before a start, and not only looked for`() {
        let empty = HTTPServerSettings.TLSFiles(certificate: "/dev/null", key: "/dev/null")
        let reason = CertificateCheck.refusal(of: empty)
        #expect(reason?.hasPrefix("cannot use /dev/null with /dev/null for TLS") == true)
        let missing = HTTPServerSettings.TLSFiles(certificate: "/nonexistent/a", key: "/nonexistent/b")
        #expect(CertificateCheck.refusal(of: missing)?.hasPrefix("cannot read /nonexistent/a") == true)
        #expect(CertificateCheck.refusal(of: nil) == nil)
    }
}
