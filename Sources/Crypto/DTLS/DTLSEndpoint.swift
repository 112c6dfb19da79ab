import Base
import COpenSSL

/// One end of a DTLS 1.2 association that keys SRTP.
///
/// Takes datagrams and the time, returns what is to be done. Makes nothing until the first record comes.
package final class DTLSEndpoint {
    package enum Effect: Sendable {
        /// One datagram.
        case send([UInt8])
        /// The handshake is done and the peer's certificate is the one that was announced.
        case connected(SRTPKeyingMaterial)
        case applicationData([UInt8])
        /// The last effect there is.
        case closed(CloseReason)
    }

    package enum CloseReason: Equatable, Sendable {
        /// `close()` was called.
        case closedHere
        /// The peer sent close_notify or a fatal alert after the handshake.
        case closedByPeer
        /// The peer's certificate is none of those that were announced.
        case wrongFingerprint
        /// The handshake took longer than `DTLSEndpoint.handshakeTimeout`.
        case timedOut
        /// The handshake failed; the text is OpenSSL's.
        case handshakeFailed(String)
    }

    /// How long a handshake may take.
    package static let handshakeTimeout = Duration.seconds(30)

    /// When `advance(to:)` wants to be called; nil while nothing is awaited.
    package private(set) var deadline: MonotonicTime?

    /// - Parameter expectedFingerprints: the peer's certificate must have one of these.
    package init(context: DTLSContext, role: DTLSRole, expectedFingerprints: [CertificateFingerprint]) {}

    /// Sends the first flight, if this is the client.
    package func start(at now: MonotonicTime) -> [Effect] { [] }

    package func receive(_ datagram: Span<UInt8>, at now: MonotonicTime) -> [Effect] { [] }

    /// Repeats the flight that was not answered, if it is time.
    package func advance(to now: MonotonicTime) -> [Effect] { [] }

    /// Encrypts application data: one datagram.
    package func send(_ bytes: Span<UInt8>) -> [Effect] { [] }

    /// Says goodbye to the peer.
    package func close() -> [Effect] { [] }

    /// Frees most of the memory once connected; application data is then no longer possible.
    package func releaseHandshake() {}
}
