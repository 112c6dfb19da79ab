/// The server's half of RTMP's handshake, in the plain form that every publisher takes.
///
/// What Flash players want beyond it, digests with Adobe's keys, no encoder asks for.
/// - Source: Adobe, RTMP 1.0 (2012), §5.2.
package enum RTMPHandshake {
    /// C0 and C1, in bytes.
    package static let helloLength = 1 + blockLength
    /// C2, in bytes.
    package static let blockLength = 1_536
    /// What is random in a block.
    package static let randomLength = blockLength - 8

    private static let version: UInt8 = 3

    /// S0, S1 and S2, which answer C0 and C1.
    /// - Parameter random: `randomLength` bytes.
    package static func answer(
        to hello: Span<UInt8>, random: [UInt8]
    ) throws(WireError) -> [UInt8] {
        // Before the length: what speaks HTTP or TLS is known by its first byte.
        guard try hello.uint8(at: 0) == version else { throw .invalid(.rtmpVersion) }
        try hello.require(helloLength)
        var bytes: [UInt8] = [version]
        bytes.reserveCapacity(1 + 2 * blockLength)
        // A time, and four zeros: no version that would promise a digest.
        bytes += [UInt8](repeating: 0, count: 8)
        bytes += random.prefix(randomLength)
        bytes += [UInt8](repeating: 0, count: max(randomLength - random.count, 0))
        bytes += try hello.bytes(1..<helloLength)
        return bytes
    }
}

extension WireError.Field {
    /// Something else than RTMP's version 3.
    package static var rtmpVersion: Self { .init("rtmp.version") }
}
