/// Both sides of RTMP's handshake, in the plain form that every publisher and server accepts.
///
/// Flash players also require digests with Adobe's keys; encoders do not.
/// - Source: Adobe, RTMP 1.0 (2012), §5.2.
package enum RTMPHandshake {
    /// Bytes of C0 and C1.
    package static let helloLength = 1 + blockLength
    /// Bytes of C2, and of each of C1, S1 and S2.
    package static let blockLength = 1_536
    /// Bytes of S0, S1 and S2.
    package static let answerLength = 1 + 2 * blockLength
    /// Random bytes in a block.
    package static let randomLength = blockLength - 8

    private static let version: UInt8 = 3

    /// Returns S0, S1 and S2, the answer to C0 and C1.
    /// - Parameter random: `randomLength` bytes.
    package static func answer(
        to hello: Span<UInt8>, random: [UInt8]
    ) throws(WireError) -> [UInt8] {
        // Checked before the length: HTTP and TLS differ in the first byte.
        guard try hello.uint8(at: 0) == version else { throw .invalid(.rtmpVersion) }
        try hello.require(helloLength)
        return Self.hello(random: random) + (try hello.bytes(1..<helloLength))
    }

    /// Returns C0 and C1, with which a client begins; S0 and S1 have the same form.
    /// - Parameter random: `randomLength` bytes.
    package static func hello(random: [UInt8]) -> [UInt8] {
        var bytes: [UInt8] = [version]
        bytes.reserveCapacity(answerLength)
        // A time of 0, and four zeros: another version there would announce a digest.
        bytes += [UInt8](repeating: 0, count: 8)
        bytes += random.prefix(randomLength)
        bytes += [UInt8](repeating: 0, count: max(randomLength - random.count, 0))
        return bytes
    }

    /// Returns C2, with which a client ends its side: an echo of S1.
    ///
    /// S2 is not checked, because servers differ in what they put there.
    /// - Parameter answer: S0, S1 and S2.
    package static func echo(of answer: Span<UInt8>) throws(WireError) -> [UInt8] {
        guard try answer.uint8(at: 0) == version else { throw .invalid(.rtmpVersion) }
        try answer.require(answerLength)
        return try answer.bytes(1..<helloLength)
    }
}

extension WireError.Field {
    /// A version other than 3.
    package static var rtmpVersion: Self { .init("rtmp.version") }
}
