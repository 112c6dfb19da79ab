import CZlib

/// Compresses bodies that are made once and sent often.
/// - Source: RFC 1952; RFC 9110 §8.4.1.3; zlib `zlib.h`.
package enum Gzip {
    /// `deflateInit2`: the largest window (2^15 bytes); adding 16 selects the gzip header and checksum.
    private static let windowBits: CInt = 15 + 16
    /// `deflateInit2`: zlib's default, which takes about 256 kB while compressing.
    private static let memoryLevel: CInt = 8

    /// Compresses at zlib's highest level, as time does not matter for work done once at the start.
    /// - Returns: nil if the result would not be smaller, the input has 4 GiB or more, or memory is short.
    package static func compress(_ bytes: [UInt8]) -> [UInt8]? {
        guard let count = UInt32(exactly: bytes.count) else { return nil }
        var stream = unsafe z_stream()
        let began = unsafe deflateInit2_(
            &stream, Z_BEST_COMPRESSION, Z_DEFLATED, windowBits, memoryLevel, Z_DEFAULT_STRATEGY,
            ZLIB_VERSION, CInt(MemoryLayout<z_stream>.size))
        guard began == Z_OK else { return nil }
        defer { unsafe deflateEnd(&stream) }
        // zlib only reads its input, although `next_in` is not declared const.
        var input = bytes
        return unsafe input.withUnsafeMutableBufferPointer { input in
            unsafe stream.next_in = input.baseAddress
            unsafe stream.avail_in = count
            let made = unsafe [UInt8](unsafeUninitializedCapacity: input.count) { output, made in
                unsafe stream.next_out = output.baseAddress
                unsafe stream.avail_out = count
                // The output has room for as many bytes as the input: if one call does not finish, nothing is gained.
                guard unsafe deflate(&stream, Z_FINISH) == Z_STREAM_END else { return }
                unsafe made = Int(stream.total_out)
            }
            return made.isEmpty ? nil : made
        }
    }
}

extension HTTPRequest {
    /// Whether the client accepts a body in gzip; an entry for gzip takes precedence over `*`, and weight 0 refuses.
    /// - Source: RFC 9110 §12.5.3 (Accept-Encoding), §12.4.2 (weights), §8.4.1.3 (`x-gzip`).
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
