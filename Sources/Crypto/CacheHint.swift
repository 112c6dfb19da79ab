import COpenSSL

/// A stretch of memory that is read for every packet, to be loaded while another viewer's packets are made.
///
/// What a viewer needs lies in a few objects of its own. With hundreds of viewers none of it is in the processor's
/// cache when its turn comes, and waiting for memory would take longer than the work. Holds an address, not a
/// reference: nothing is counted, and one that is out of date does no harm.
package struct CacheHint: Sendable {
    private let address: UInt
    private let lines: UInt32

    /// The first bytes of an object, in the order in which its properties are declared.
    package init(_ object: AnyObject, bytes: Int) {
        self.init(address: UInt(bitPattern: ObjectIdentifier(object)), bytes: bytes)
    }

    init(address: UInt, bytes: Int) {
        let line = UInt(ROSTRUM_CACHE_LINE)
        let start = address & ~(line &- 1)
        self.address = start
        let end = address &+ UInt(clamping: bytes)
        lines = UInt32(clamping: (end &- start &+ line &- 1) / line)
    }

    /// Begins to load it.
    package func prefetch() {
        rostrum_cache_prefetch(address, lines)
    }
}
