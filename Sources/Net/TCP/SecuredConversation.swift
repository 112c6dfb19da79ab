import Base
import Crypto

/// Says by TLS what a conversation says in the clear.
package final class SecuredConversation<Inner: StreamConversation>: StreamConversation {
    package typealias Command = Inner.Command

    private enum Security {
        /// Nothing has come yet.
        case none(TLSIdentity)
        case tls(SharedTLS)
        /// There is no certificate that can be used: the connection is closed.
        case impossible
    }

    private let inner: Inner
    private var security: Security
    private var isClosing = false
    /// Of TLS that was begun elsewhere.
    private var unsent: [UInt8] = []

    /// - Parameter identity: nil for nobody, whose connection is closed.
    package init(_ inner: Inner, as identity: TLSIdentity?) {
        self.inner = inner
        security = identity.map { .none($0) } ?? .impossible
    }

    package var isEstablished: Bool { inner.isEstablished }
    package var isOver: Bool {
        switch security {
        case .none: inner.isOver
        case .tls(let tls): inner.isOver || tls.isClosed
        case .impossible: true
        }
    }
    package var deadline: MonotonicTime? { inner.deadline }

    package func resume(_ begun: BegunTLS, at now: MonotonicTime) {
        security = .tls(begun.tls)
        unsent = begun.output
        if !begun.plain.isEmpty { inner.receive(begun.plain.span, at: now) }
    }

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
