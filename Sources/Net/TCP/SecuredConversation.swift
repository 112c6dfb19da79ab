import Base
import Crypto

/// Says by TLS what a conversation says in the clear.
package final class SecuredConversation<Inner: StreamConversation>: StreamConversation {
    package typealias Command = Inner.Command

    private let inner: Inner
    /// Nil without a certificate that can be used: the connection is closed.
    private let tls: TLSConnection?
    private var isClosing = false

    /// - Parameter identity: nil for nobody, whose connection is closed.
    package init(_ inner: Inner, as identity: TLSIdentity?) {
        self.inner = inner
        tls = identity.flatMap { try? TLSConnection($0) }
    }

    package var isEstablished: Bool { inner.isEstablished }
    package var isOver: Bool { inner.isOver || tls?.isClosed ?? true }
    package var deadline: MonotonicTime? { inner.deadline }

    package func receive(_ bytes: Span<UInt8>, at now: MonotonicTime) {
        let plain = tls?.receive(bytes) ?? []
        if !plain.isEmpty { inner.receive(plain.span, at: now) }
    }

    package func perform(_ command: Command, at now: MonotonicTime) { inner.perform(command, at: now) }

    package func advance(to now: MonotonicTime) { inner.advance(to: now) }

    package func takeOutput(waiting: Int) -> [UInt8] {
        guard let tls else { return [] }
        tls.send(inner.takeOutput(waiting: waiting))
        if inner.isOver, !isClosing {
            isClosing = true
            tls.close()
        }
        return tls.takeOutput()
    }

    package func lose(at now: MonotonicTime) { inner.lose(at: now) }
}
