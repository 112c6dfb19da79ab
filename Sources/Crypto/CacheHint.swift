import COpenSSL

/// A range of memory that is read for every packet, to be loaded while the packets of another viewer are made.
///
/// What sending to a viewer needs is in a few objects of its own. With hundreds of viewers, none of these is in the
/// processor's cache when its turn comes, and waiting for memory would take longer than the work itself. A hint
/// contains an address, not a reference: it costs no reference counting, and an outdated hint is harmless.
package struct CacheHint: Sendable {
    private let address: UInt
    private let lines: UInt32

    /// Covers the first bytes of an object, where its properties are in the order of declaration.
    package init(_ object: AnyObject, bytes: Int) {
        self.init(address: UInt(bitPattern: ObjectIdentifier(object)), bytes: bytes)
    }

    /// Covers all cache lines that the bytes from `address` on touch.
    init(address: UInt, bytes: Int) {
        let line = UInt(ROSTRUM_CACHE_LINE)
        let start = address & ~(line &- 1)
        self.address = start
        let end = address &+ UInt(clamping: bytes)
        lines = UInt32(clamping: (end &- start &+ line &- 1) / line)
    }

    /// Starts loading the memory, without waiting for it.
    package func prefetch() {
        rostrum_cache_prefetch(address, lines)
    }
}
