import CZlib

/// Makes bodies smaller that are made once and sent often.
/// - Source: RFC 1952; RFC 9110 §8.4.1.3; zlib `zlib.h`.
package enum Gzip {
    /// `deflateInit2`'s: the largest window (2^15 bytes), and 16 for gzip's head and sum around it.
    private static let windowBits: CInt = 15 + 16
    /// `deflateInit2`'s: as zlib has it by default, 256 kB while it works.
    private static let memoryLevel: CInt = 8

    /// As small as zlib makes it.
    /// - Returns: nil for what gets no smaller, and where the library has no memory for it.
    package static func compress(_ bytes: [UInt8]) -> [UInt8]? {
        guard let count = UInt32(exactly: bytes.count) else { return nil }
        var stream = unsafe z_stream()
        let began = unsafe deflateInit2_(
            &stream, Z_BEST_COMPRESSION, Z_DEFLATED, windowBits, memoryLevel, Z_DEFAULT_STRATEGY,
            ZLIB_VERSION, CInt(MemoryLayout<z_stream>.size))
        guard began == Z_OK else { return nil }
        defer { unsafe deflateEnd(&stream) }
        // It only reads what it is given, though its type does not say so.
        var input = bytes
        return unsafe input.withUnsafeMutableBufferPointer { input in
            unsafe stream.next_in = input.baseAddress
            unsafe stream.avail_in = count
            let made = unsafe [UInt8](unsafeUninitializedCapacity: input.count) { output, made in
                unsafe stream.next_out = output.baseAddress
                unsafe stream.avail_out = count
                // One call writes all of it, or there is no room, and it is no smaller.
                guard unsafe deflate(&stream, Z_FINISH) == Z_STREAM_END else { return }
                unsafe made = Int(stream.total_out)
            }
            return made.isEmpty ? nil : made
        }
    }
}

extension HTTPRequest {
    /// Whether the client takes a body in gzip.
    /// - Source: RFC 9110 §12.5.3.
    package var acceptsGzip: Bool {
        var acceptsAny = false
        for item in (headers["accept-encoding"] ?? "").split(separator: ",") {
            let parts = item.split(separator: ";", omittingEmptySubsequences: false).map(\.trimmed)
            let isRefused = parts.dropFirst().contains { parameter in
                let weight = parameter.lowercased()
                return weight.hasPrefix("q=0") && Double(weight.dropFirst(2)) == 0
            }
            switch parts[0].lowercased() {
            case "gzip", "x-gzip": return !isRefused
            case "*": acceptsAny = !isRefused
            default: break
            }
        }
        return acceptsAny
    }
}
