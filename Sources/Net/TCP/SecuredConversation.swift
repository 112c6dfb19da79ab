import Base
import Crypto

/// Wraps a conversation in TLS.
package final class SecuredConversation<Inner: StreamConversation>: StreamConversation {
    /// Commands go to the wrapped conversation unchanged.
    package typealias Command = Inner.Command

    /// How far TLS has come.
    private enum Security {
        /// Nothing was received yet.
        case none(TLSIdentity)
        case tls(SharedTLS)
        /// There is no usable certificate: the connection is closed.
        case impossible
    }

    private let inner: Inner
    private var security: Security
    /// Whether TLS was told to close, so that it is told only once.
    private var isClosing = false
    /// Output of TLS that another thread began and had not sent yet; it is sent first.
    private var unsent: [UInt8] = []

    /// - Parameter identity: certificate and key; nil if there is none, which closes the connection.
    package init(_ inner: Inner, as identity: TLSIdentity?) {
        self.inner = inner
        security = identity.map { .none($0) } ?? .impossible
    }

    /// As the wrapped conversation says: a TLS handshake alone does not count.
    package var isEstablished: Bool { inner.isEstablished }
    /// Whether the wrapped conversation is over, or TLS is.
    package var isOver: Bool {
        switch security {
        case .none: inner.isOver
        case .tls(let tls): inner.isOver || tls.isClosed
        case .impossible: true
        }
    }
    /// Deadlines are the wrapped conversation's.
    package var deadline: MonotonicTime? { inner.deadline }

    /// Continues a handshake that another thread did, with the plain bytes that it already received.
    package func resume(_ begun: BegunTLS, at now: MonotonicTime) {
        security = .tls(begun.tls)
        unsent = begun.output
        if !begun.plain.isEmpty { inner.receive(begun.plain.span, at: now) }
    }

    /// Decrypts, and passes plain bytes on.
    ///
    /// TLS is set up with the first bytes, so that silent connections cost little.
    package func receive(_ bytes: Span<UInt8>, at now: MonotonicTime) {
        if case .none(let identity) = security {
            security = (try? SharedTLS(identity)).map { .tls($0) } ?? .impossible
        }
        guard case .tls(let tls) = security else { return }
        let plain = tls.receive(bytes)
        if !plain.isEmpty { inner.receive(plain.span, at: now) }
    }

    package func perform(_ command: Command, at now: MonotonicTime) { inner.perform(command, at: now) }

    package func advance(to now: MonotonicTime) { inner.advance(to: now) }

    /// The wrapped conversation's output, encrypted, with TLS's own messages.
    package func takeOutput(waiting: Int) -> [UInt8] {
        guard case .tls(let tls) = security else { return [] }
        tls.send(inner.takeOutput(waiting: waiting))
        if inner.isOver, !isClosing {
            isClosing = true
            tls.close()
        }
        defer { unsent = [] }
        return unsent + tls.takeOutput()
    }

    package func lose(at now: MonotonicTime) { inner.lose(at: now) }
}
