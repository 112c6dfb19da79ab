import CWebSockets

/// A certificate chain and its private key, read from PEM files.
///
/// Not copyable: OpenSSL's objects have exactly one owner. A new certificate is read on the caller's thread and then
/// handed to the service thread as an address.
@safe package struct ServerCertificate: ~Copyable {
    private let handle: OpaquePointer

    /// Reads both files and verifies that the key belongs to the certificate.
    /// - Throws: `unreadableFile` if a file cannot be opened; `badCertificate` if a file is no PEM, the key belongs to
    ///   another certificate, or the key needs a pass phrase.
    package init(_ files: HTTPServerSettings.TLSFiles) throws(HTTPServerError) {
        for path in [files.certificate, files.key] { try HTTPServer.requireReadable(path) }
        var problem = [CChar](repeating: 0, count: 256)
        let handle = unsafe problem.withUnsafeMutableBufferPointer { room in
            unsafe cws_certificate_read(files.certificate, files.key, room.baseAddress, room.count)
        }
        guard let handle = unsafe handle else {
            let detail = String(
                decoding: problem.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
            throw .badCertificate(certificate: files.certificate, key: files.key, detail: detail)
        }
        unsafe self.handle = unsafe handle
    }

    /// Takes ownership of a certificate that `relinquish` gave away; nil for address 0.
    init?(address: UInt) {
        guard let handle = unsafe OpaquePointer(bitPattern: address) else { return nil }
        unsafe self.handle = unsafe handle
    }

    deinit {
        unsafe cws_certificate_free(handle)
    }

    /// Gives up ownership without freeing; the receiver must call `init(address:)` exactly once.
    ///
    /// The address crosses threads inside a command, which cannot hold a noncopyable value.
    consuming func relinquish() -> UInt {
        let address = unsafe UInt(bitPattern: handle)
        discard self
        return address
    }

    /// Start of the leaf's validity and the earliest end in the chain, in seconds since 1970; 0 for an unreadable time.
    package var validity: (from: Int, until: Int) {
        unsafe (Int(cws_certificate_not_before(handle)), Int(cws_certificate_not_after(handle)))
    }

    /// Whether the issuer is the subject itself, so that clients have no reason to trust it.
    package var isSelfIssued: Bool { unsafe cws_certificate_is_self_issued(handle) != 0 }

    /// Whether the file holds the leaf alone although another certificate issued it.
    ///
    /// Browsers often fetch or remember intermediates; other clients fail the handshake.
    /// - Source: RFC 8446 §4.4.2 (each certificate is followed by the one that certifies it).
    package var lacksChain: Bool { unsafe cws_certificate_is_alone(handle) != 0 && !isSelfIssued }

    /// Host names and IP addresses among the subject's alternative names, up to 16 kB of text in total.
    package var names: [String] {
        var bytes = [CChar](repeating: 0, count: 16_384)
        let count = unsafe bytes.withUnsafeMutableBufferPointer { room in
            unsafe cws_certificate_names(handle, room.baseAddress, room.count)
        }
        let text = String(decoding: bytes.prefix(count).map(UInt8.init(bitPattern:)), as: UTF8.self)
        return text.split(separator: "\n").map(String.init)
    }
}
