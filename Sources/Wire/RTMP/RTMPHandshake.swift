/// Both halves of RTMP's handshake, in the plain form that every publisher and every server takes.
///
/// What Flash players want beyond it, digests with Adobe's keys, no encoder asks for.
/// - Source: Adobe, RTMP 1.0 (2012), §5.2.
package enum RTMPHandshake {
    /// C0 and C1, in bytes.
    package static let helloLength = 1 + blockLength
    /// C2, in bytes.
    package static let blockLength = 1_536
    /// S0, S1 and S2, in bytes.
    package static let answerLength = 1 + 2 * blockLength
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
        return Self.hello(random: random) + (try hello.bytes(1..<helloLength))
    }

    /// C0 and C1, with which a client begins; S0 and S1 are the same.
    /// - Parameter random: `randomLength` bytes.
    package static func hello(random: [UInt8]) -> [UInt8] {
        var bytes: [UInt8] = [version]
        bytes.reserveCapacity(answerLength)
        // A time, and four zeros: no version that would promise a digest.
        bytes += [UInt8](repeating: 0, count: 8)
        bytes += random.prefix(randomLength)
        bytes += [UInt8](repeating: 0, count: max(randomLength - random.count, 0))
        return bytes
    }

    /// C2, with which a client ends its half: what S1 was.
    ///
    /// S2 proves nothing, as servers fill it with anything.
    /// - Parameter answer: S0, S1 and S2.
    package static func echo(of answer: Span<UInt8>) throws(WireError) -> [UInt8] {
        guard try answer.uint8(at: 0) == version else { throw .invalid(.rtmpVersion) }
        try answer.require(answerLength)
        return try answer.bytes(1..<helloLength)
    }
}

extension WireError.Field {
    /// Something else than RTMP's version 3.
    package static var rtmpVersion: Self { .init("rtmp.version") }
}
