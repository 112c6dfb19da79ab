import CWebSockets

/// A certificate with those that it depends on, and its key, as they lie in their files.
///
/// Not copyable: the library's memory has one owner, which may be the service thread.
@safe package struct ServerCertificate: ~Copyable {
    private let handle: OpaquePointer

    /// Reads the files, and makes sure that the key is the certificate's.
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

    /// Takes back what `relinquish` gave away.
    init?(address: UInt) {
        guard let handle = unsafe OpaquePointer(bitPattern: address) else { return nil }
        unsafe self.handle = unsafe handle
    }

    deinit {
        unsafe cws_certificate_free(handle)
    }

    /// For somebody else to free, by `init(address:)`.
    consuming func relinquish() -> UInt {
        let address = unsafe UInt(bitPattern: handle)
        discard self
        return address
    }

    /// Seconds since 1970 of its beginning, and of the earliest end in the chain; 0 for what cannot be told.
    package var validity: (from: Int, until: Int) {
        unsafe (Int(cws_certificate_not_before(handle)), Int(cws_certificate_not_after(handle)))
    }

    /// Whether nobody but itself vouches for it.
    package var isSelfIssued: Bool { unsafe cws_certificate_is_self_issued(handle) != 0 }

    /// Whether the file lacks those that it depends on, which some clients then do not find.
    package var lacksChain: Bool { unsafe cws_certificate_is_alone(handle) != 0 && !isSelfIssued }

    /// Host names and addresses that it is good for: of its subject's alternative names, the first 16 kB.
    package var names: [String] {
        var bytes = [CChar](repeating: 0, count: 16_384)
        let count = unsafe bytes.withUnsafeMutableBufferPointer { room in
            unsafe cws_certificate_names(handle, room.baseAddress, room.count)
        }
        let text = String(decoding: bytes.prefix(count).map(UInt8.init(bitPattern:)), as: UTF8.self)
        return text.split(separator: "\n").map(String.init)
    }
}
